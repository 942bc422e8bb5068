package disk

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// fsckUncorrected is the bit of fsck's exit status that says that errors are left. Lower ones say that it corrected
// what it found, higher ones that it did not work.
const fsckUncorrected = 4

// Check repairs an ext4 that is not mounted, as far as that is safe without a person; what is left to a person is
// an error. It is not for a device that may be written to by another node, nor for a mount that is read-only.
//
// XFS needs no such check: the kernel replays its journal when it is mounted, and refuses to mount what is
// damaged. Where fsck itself fails, the check is left out, and logged: the mount says whether it matters. That is
// what Kubernetes does with disks of its own.
func (t Tools) Check(ctx context.Context, dev, fsType string) error {
	if fsType == xfs {
		return nil
	}
	if err := t.sameNode(dev); err != nil {
		return fmt.Errorf("check %s: %w", dev, err)
	}
	return t.fsck(ctx, dev, host.Program{Name: "fsck." + fsType, Args: []string{"-a", dev}})
}

func (t Tools) fsck(ctx context.Context, dev string, program host.Program) error {
	_, err := t.host().Run(ctx, program)
	var status *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("check %s: %w", dev, err)
	case errors.As(err, &status) && status.ExitCode() > 0 && status.ExitCode() < fsckUncorrected:
		t.Log.Info("fsck corrected errors of a file system", logkeys.Device, dev, logkeys.Cause, err.Error())
		return nil
	// No exit status: a signal killed it.
	case errors.As(err, &status) && (status.ExitCode() < 0 || status.ExitCode()&fsckUncorrected != 0):
		return fmt.Errorf("%s has errors that are not corrected; unmount it everywhere and run fsck.ext4 -f %s on the node: %w", dev, dev, err)
	}
	t.Log.Info("a file system was not checked before it is mounted", logkeys.Device, dev, logkeys.Cause, err.Error())
	return nil
}
