package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/launch"
)

// CanStall reports whether [Disk.Stall] can be had: only file systems that are on
// a device can be frozen, and only our own may be.
func (d *Disk) CanStall() bool {
	switch d.kind {
	case Ext4, XFS, Btrfs:
		return true
	}
	return false
}

// Frozen reports whether the disk stands still right now, as far as this process
// has heard: a moment passes between the fact and the word.
func (d *Disk) Frozen() bool { return d.frozen.Load() }

// Stall makes the disk slow for the total time: it freezes the file system for
// the time frozen, thaws it for the time thawed, and so on. While it is frozen,
// whoever wants to change anything on it waits, and cannot be killed either;
// reading goes on. A frozen file system cannot be unmounted.
//
// It returns nil after the total time and the context's error when that ended
// earlier. The file system has thawed when it returns, and it also thaws, within
// a moment, when this process dies in the middle, in whatever way: the freezing
// is done by a child (see [RunHelper]) which holds out until then. Only when
// both are killed at the same moment it stays frozen, with its loop device,
// until the machine is restarted or told to thaw everything (Magic SysRq j).
//
// One Stall can go on at a time; a second one is an error.
func (d *Disk) Stall(ctx context.Context, total, frozen, thawed time.Duration) error {
	switch {
	case !d.CanStall():
		return fmt.Errorf("%w: stall the disk: %s cannot be frozen; only ext4, xfs and btrfs can", launch.ErrUsage, d.kind)
	case total <= 0, frozen <= 0, thawed <= 0:
		return fmt.Errorf("%w: stall the disk for %s, frozen for %s and thawed for %s at a time: each has to be more than 0",
			launch.ErrUsage, total, frozen, thawed)
	case !d.stalling.TryLock():
		return errors.New("stall the disk: it is stalled already")
	}
	defer d.stalling.Unlock()
	// Opened now, as later it may have to thaw.
	root, err := os.Open(d.work)
	if err != nil {
		return fmt.Errorf("stall the disk: %w", err)
	}
	defer root.Close()
	defer d.frozen.Store(false)
	if err := d.stall(ctx, root, total, frozen, thawed); err != nil {
		return fmt.Errorf("stall the disk: %w", err)
	}
	return nil
}

// stall runs the child and makes sure that everything has thawed after it.
func (d *Disk) stall(ctx context.Context, root *os.File, total, frozen, thawed time.Duration) (err error) {
	// The child hears of the end of the thread that has started it, which must
	// not come before that of the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var complaints bytes.Buffer
	cmd := freezer(total, frozen, thawed)
	cmd.ExtraFiles = []*os.File{root}
	cmd.Stderr = &complaints
	leash, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	news, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process that does it: %w", err)
	}
	// Should it be killed itself, it leaves the file system frozen.
	defer func() { err = errors.Join(err, thaw(root)) }()
	stop := context.AfterFunc(ctx, func() { leash.Close() })
	defer stop()

	times, err := d.listen(news)
	leash.Close()
	if waited := cmd.Wait(); waited != nil {
		return fmt.Errorf("the process that does it: %w: %s", waited, strings.TrimSpace(complaints.String()))
	}
	switch {
	case err != nil:
		return fmt.Errorf("listen to the process that does it: %w", err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case times == 0:
		return errors.New("it was not frozen a single time; does the program call host.RunHelper first?")
	}
	return nil
}

// listen follows what the child says until it has nothing more to say, and
// returns how often the file system was frozen.
func (d *Disk) listen(news io.Reader) (times int, err error) {
	word := make([]byte, 1)
	for {
		switch _, err := news.Read(word); {
		case errors.Is(err, io.EOF):
			return times, nil
		case err != nil:
			return times, err
		}
		if word[0] == saysFrozen {
			times++
		}
		d.frozen.Store(word[0] == saysFrozen)
	}
}
