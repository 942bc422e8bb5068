package roottest

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// HangOpens makes each open of a directory hang in the kernel, as on a disk that does not answer. hangs is closed once one
// does; goOn, or the end of the test, lets all go on. Other opens, of what is in it, are not affected.
func HangOpens(t testing.TB, dir string) (hangs <-chan struct{}, goOn func()) {
	t.Helper()
	group, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.FanotifyMark(group, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM|unix.FAN_ONDIR, unix.AT_FDCWD, dir); err != nil {
		unix.Close(group)
		t.Fatal(err)
	}
	hung, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		poll := []unix.PollFd{{Fd: int32(group), Events: unix.POLLIN}}
		for {
			select {
			case <-stop:
				return
			default:
			}
			if n, err := unix.Poll(poll, 10); err == nil && n > 0 {
				close(hung)
				return
			}
		}
	}()
	goOn = sync.OnceFunc(func() {
		close(stop)
		<-ended
		unix.Close(group) // which allows all opens
	})
	t.Cleanup(goOn)
	return hung, goOn
}
