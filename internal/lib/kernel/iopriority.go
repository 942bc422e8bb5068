package kernel

import "golang.org/x/sys/unix"

// Of ioprio_set(2), which x/sys/unix does not have.
const (
	whoProcess      = 1 // a thread, in truth
	classShift      = 13
	classBestEffort = 2
	lowestLevel     = 7
)

// LowestIOPriority gives the calling thread the lowest priority of the best-effort class, and
// returns what restores the priority that it had before. The goroutine has to be locked to its
// thread until then (runtime.LockOSThread). Where the system refuses, nothing changes. The I/O
// schedulers bfq and mq-deadline heed priorities.
//
// It is not the idle class: a thread that removes a file or looks up a name reads from the disk
// while it holds the file system's journal or a directory's lock. In the idle class a busy disk
// does not serve that read for up to ten seconds (mq-deadline), and all writers wait with it.
//
// If restore returns an error, the thread keeps the lowest priority.
func LowestIOPriority() (restore func() error) {
	before, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
	if errno != 0 || setIOPriority(classBestEffort<<classShift|lowestLevel) != nil {
		return func() error { return nil }
	}
	return func() error { return setIOPriority(before) }
}

func setIOPriority(priority uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, priority); errno != 0 {
		return errno
	}
	return nil
}
