package wallclock

import (
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is a wall clock that differs from the machine's by an offset. Any
// number of programs may be started under it, at the same time or one after the
// other, and all show the same time. The zero value is the machine's time. A
// Clock is safe for concurrent use and must not be copied.
type Clock struct {
	offset atomic.Int64
}

// Set makes the clock show the machine's time plus the offset, to the programs
// that run and to those started later. A program that asks for the time after
// Set has returned sees the new one.
func (c *Clock) Set(offset time.Duration) { c.offset.Store(int64(offset)) }

// Offset is what was last given to [Clock.Set].
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// Start is cmd.Start, with the program under this clock from its first
// instruction on. Everything of cmd is used and works as if cmd.Start had been
// called, with two differences:
//
//   - Pdeathsig is sent when this process ends. The thread of the caller does
//     not matter, so that it need not be locked.
//   - SysProcAttr.Ptrace is for Start's own use: the program runs.
//
// A program that does not exist or cannot be executed gives the error of
// cmd.Start. After any error there is no process.
func (c *Clock) Start(cmd *exec.Cmd) error {
	started := make(chan error)
	onOwnThread(func() {
		program, err := c.launch(cmd)
		started <- err
		if err != nil {
			return
		}
		// The kernel sends Pdeathsig when the thread that forked ends, so this
		// one has to stay as long as the program.
		_ = waitFor(program, unix.POLLIN)
		unix.Close(program)
	})
	return <-started
}

// launch starts cmd and returns a pidfd of it. The calling thread has the
// filter from then on and must not run anything else.
func (c *Clock) launch(cmd *exec.Cmd) (pidfd int, err error) {
	// The child inherits the filter of the thread that forks it. The filter
	// does this thread itself no harm, which asks the vDSO for the time.
	questions, err := listen()
	if err != nil {
		return 0, fmt.Errorf("start %s under a clock of its own: %w", cmd.Path, err)
	}
	go c.serve(questions)
	return startBlind(cmd)
}
