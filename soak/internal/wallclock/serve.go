package wallclock

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// serve answers the questions until nobody is left to ask, and closes the
// listener.
//
// A thread that is interrupted by a signal while it waits asks again afterwards.
// As there is only one to answer, it gets its second answer after the first was
// written, so a late write never hits memory that serves something else by then.
func (c *Clock) serve(listener int) {
	defer unix.Close(listener)
	for waitFor(listener, unix.POLLIN)&unix.POLLIN != 0 {
		err := c.answerNext(listener)
		if err != nil && !errors.Is(err, errGone) {
			// An error would be no answer: Go does not look at it and would go
			// on with whatever time is in its memory.
			panic(fmt.Errorf("tell the time to a program under a clock of its own: %w", err))
		}
	}
}

// answerNext answers one question.
func (c *Clock) answerNext(listener int) error {
	n, err := receive(listener)
	if err != nil {
		return err
	}
	r, err := c.reply(listener, n)
	if err != nil {
		return err
	}
	return send(listener, r)
}

// reply is what a question gets now.
func (c *Clock) reply(listener int, n notification) (*response, error) {
	offset := c.Offset()
	if offset == 0 {
		// The kernel answers for itself.
		return &response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}, nil
	}
	value, writes := answerTo(n.number)(n.args, time.Now().Add(offset))
	err := give(listener, n, writes)
	if errors.Is(err, unix.EIO) {
		// There is no such memory. The system call has its own word for that.
		return &response{id: n.id, errno: -int32(unix.EFAULT)}, nil
	}
	return &response{id: n.id, value: value}, err
}

// give writes into the memory of the thread that asked. EIO says that it
// has no memory there.
func give(listener int, n notification, writes []write) error {
	path := fmt.Sprintf("/proc/%d/mem", n.thread)
	memory, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(memory)
	}
	// If the thread has ended meanwhile, this may be the memory of another with
	// the same number. If it waits now, the memory is the right one for good.
	if gone := stillWaits(listener, n.id); gone != nil {
		return gone
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	for _, w := range writes {
		if w.address == 0 {
			continue
		}
		if _, err := unix.Pwrite(memory, w.data, int64(w.address)); err != nil {
			return fmt.Errorf("write to %s: %w", path, err)
		}
	}
	return nil
}
