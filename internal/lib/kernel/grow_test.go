package kernel

import (
	"errors"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSizeOfXFSGeometry: the size is part of the request's number.
func TestSizeOfXFSGeometry(t *testing.T) {
	if size := unsafe.Sizeof(XFSGeometry{}); size != 112 {
		t.Errorf("%d bytes", size)
	}
}

func TestRun(t *testing.T) {
	if err := Run(exec.Command("true")); err != nil {
		t.Error(err)
	}
	var status *exec.ExitError
	if err := Run(exec.Command("false")); !errors.As(err, &status) {
		t.Error(err)
	}
	Inject(t, func(string, string) error { return unix.EINTR })
	if err := Run(exec.Command("true")); !errors.Is(err, unix.EINTR) {
		t.Error(err)
	}
}
