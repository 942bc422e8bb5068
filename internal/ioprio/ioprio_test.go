package ioprio

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func current(t *testing.T) uintptr {
	t.Helper()
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return priority
}

func TestLowest(t *testing.T) {
	runtime.LockOSThread() // never given back: the thread ends with the test
	before := current(t)
	restore := Lowest()
	if got, want := current(t), uintptr(classBestEffort<<classShift|lowestLevel); got != want {
		t.Errorf("priority %#x, want %#x: best effort, level 7", got, want)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if after := current(t); after != before {
		t.Errorf("priority %d afterwards, want %d as before", after, before)
	}
}
