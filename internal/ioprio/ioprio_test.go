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

func TestIdle(t *testing.T) {
	runtime.LockOSThread() // never given back: the thread ends with the test
	before := current(t)
	restore := Idle()
	if class := current(t) >> classShift; class != classIdle {
		t.Errorf("class %d, want %d", class, classIdle)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if after := current(t); after != before {
		t.Errorf("priority %d afterwards, want %d as before", after, before)
	}
}
