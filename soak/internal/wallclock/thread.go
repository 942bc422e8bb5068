package wallclock

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// onOwnThread runs f in a goroutine, on a thread that runs nothing else and
// ends with f. Whatever f does to its thread stays there: the runtime starts
// the threads it needs from another one as soon as one is locked.
func onOwnThread(f func()) {
	go func() {
		// There is no unlock: a thread whose goroutine ends while it is locked
		// ends with it.
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// The main thread is the exception, it never ends. While it is locked
		// here, the next goroutine gets another.
		elsewhere := make(chan struct{})
		onOwnThread(func() {
			close(elsewhere)
			f()
		})
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}

// waitFor waits until the descriptor has one of the events or has hung up, and
// tells which.
func waitFor(fd int, events int16) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		switch _, err := unix.Poll(fds, -1); {
		case err == nil:
			return fds[0].Revents
		case !again(err):
			// What is left are mistakes in the call.
			panic(err)
		}
	}
}

// again tells whether a system call was only interrupted, as by the signals
// that the runtime sends to its own threads.
func again(err error) bool {
	return errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
}
