// Package ioprio has a thread do its I/O only when nobody else wants the disk.
// It matters where an I/O scheduler heeds priorities (bfq, mq-deadline).
package ioprio

import (
	"golang.org/x/sys/unix"
)

// Of ioprio_set(2), which x/sys/unix does not have.
const (
	whoProcess = 1 // a thread, in truth
	classShift = 13
	classIdle  = 3
)

// Idle gives the calling thread the idle priority and returns what gives it
// back the one it had. The goroutine has to be locked to its thread until then
// (runtime.LockOSThread). Where the system refuses, nothing changes: to be less
// polite is no reason not to work.
//
// If the error of restore is not nil, the thread keeps the idle priority.
func Idle() (restore func() error) {
	before, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
	if errno != 0 || set(classIdle<<classShift) != nil {
		return func() error { return nil }
	}
	return func() error { return set(before) }
}

func set(priority uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, priority); errno != 0 {
		return errno
	}
	return nil
}
