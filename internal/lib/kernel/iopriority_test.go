package kernel

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func currentIOPriority(t *testing.T) uintptr {
	t.Helper()
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return priority
}

func TestLowestIOPriority(t *testing.T) {
	runtime.LockOSThread() // never given back: the thread ends with the test
	before := currentIOPriority(t)
	restore := LowestIOPriority()
	if got, want := currentIOPriority(t), uintptr(classBestEffort<<classShift|lowestLevel); got != want {
		t.Errorf("priority %#x, want %#x: best effort, level 7", got, want)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if after := currentIOPriority(t); after != before {
		t.Errorf("priority %d afterwards, want %d as before", after, before)
	}
}
