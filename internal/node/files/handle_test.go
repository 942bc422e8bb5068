package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHandleStaysOpenWhileItIsUsed: a descriptor that was closed too early may be another file's by
// then.
func TestHandleStaysOpenWhileItIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &handle{fd: fd}
	isOpen := func() bool {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err == nil
	}
	err = h.use(func(int) error {
		if err := h.use(func(int) error { return h.close() }); err != nil {
			t.Errorf("close: %v", err)
		}
		if !isOpen() {
			t.Error("closed while it is used")
		}
		return nil
	})
	if err != nil || isOpen() {
		t.Errorf("%v; still open: %t", err, isOpen())
	}
	b := make([]byte, 4)
	if n, err := h.readAt(b, 0); n != 0 || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("read after close: %d, %v", n, err)
	}
	if err := h.close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}
