package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// detach takes the file from a loop device that nothing uses, if it is still the one that isOurs knows: a device that
// lost its file may get another volume's at any time. The error is [volume.ErrBusy] while something uses it: a mount,
// also one in another mount namespace, or a process that has the device open.
func detach(ctx context.Context, name string, isOurs func(*loop) bool) error {
	// While this handle is open, the device keeps its file. It delays no other process.
	look, err := openLoop(name, os.O_RDONLY)
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	defer look.Close()
	if !isOurs(look) {
		return nil
	}
	table, err := attach.Table()
	if err != nil {
		return err
	}
	if used := mountsOf(table, name, look.number); len(used) > 0 {
		return fmt.Errorf("%w: %s is used at %s", volume.ErrBusy, name, used[0].Target)
	}
	// The kernel lends a device to one such handle at a time, and not while it is mounted.
	var l *loop
	err = insist(ctx, func() (err error) {
		if l, err = openLoop(name, os.O_RDONLY|unix.O_EXCL); errors.Is(err, unix.EBUSY) {
			err = heldDevice(blockDir, name)
		}
		return err
	})
	switch {
	case errors.Is(err, volume.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	defer l.Close()
	look.Close()
	// From here on the device goes with its last handle. One that a process has open stays until that closes it.
	if err := kernel.LoopClear(int(l.Fd())); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("take %s away: %w", name, err)
	}
	l.Close()
	return insist(ctx, func() error {
		again, err := openLoop(name, os.O_RDONLY)
		switch {
		case errors.Is(err, volume.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		defer again.Close()
		if isOurs(again) {
			return fmt.Errorf("%w: a process has %s open, and has to close it (fuser -v /dev/%s)", volume.ErrBusy, name, name)
		}
		return nil
	})
}

// heldDevice says what may hold a loop device that is not lent. block is [blockDir].
func heldDevice(block, name string) error {
	// In memory, too. What it does not report is checked below.
	holders, _ := kernel.Names(filepath.Join(block, name, "holders"))
	if len(holders) > 0 {
		return fmt.Errorf("%w: %s is part of %s; take that device away (lsblk /dev/%s)", volume.ErrBusy, name, strings.Join(holders, ", "), name)
	}
	return fmt.Errorf("%w: %s is held by a process, which has to close it (fuser -v /dev/%s), or mounted in another mount namespace",
		volume.ErrBusy, name, name)
}

// insist repeats what is refused with [volume.ErrBusy] for a moment. A loop device is busy while any process has a
// handle of it: udev looks at each new device, and a child of this process has all its handles until it is another
// program.
func insist(ctx context.Context, try func() error) error {
	const tries, pause = 25, 20 * time.Millisecond
	for n := 1; ; n++ {
		err := try()
		if !errors.Is(err, volume.ErrBusy) || n == tries {
			return err
		}
		if err := retry.Pause(ctx, pause); err != nil {
			return err
		}
	}
}
