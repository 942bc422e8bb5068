package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// timerSlack is how much later than asked for a thread of the daemon may be woken.
//
// Go's runtime has a thread that looks every 20 µs, while there is work, for others
// that the kernel keeps, to have something else run in their stead; with syncs of
// the disk there always are some. To be woken that often costs more than most of
// what a call does. With this it happens once in a millisecond at least. No wait of
// the daemon's own is shorter than that; the runtime has some, before it takes over
// what another thread is about to run itself, and calls take no longer for them.
const timerSlack = time.Millisecond

// allowSlack has the kernel wake the threads of this process together with
// something else where it can. It takes CAP_SYS_NICE, and what is not allowed
// stays as it is.
func allowSlack(slack time.Duration) error {
	seen := map[string]bool{}
	// A thread takes over what the one has that makes it. One that was made
	// meanwhile shows when the threads are read again.
	for before := -1; len(seen) > before; {
		before = len(seen)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			if seen[thread.Name()] {
				continue
			}
			seen[thread.Name()] = true
			if err := setSlack(thread.Name(), slack); err != nil {
				return err
			}
		}
	}
	return nil
}

// setSlack sets the slack of one thread. That it has ended is no error.
func setSlack(thread string, slack time.Duration) error {
	f, err := kernel.Open(slackFile(thread), os.O_WRONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.FormatInt(slack.Nanoseconds(), 10))
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// slackFile is where a thread's slack is. It is not below task, and a thread is
// found all the same.
func slackFile(thread string) string { return "/proc/" + thread + "/timerslack_ns" }
