package iscsi

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/katbox/katbox/internal/model/volume"
)

// Logout ends our sessions to a target, after the last of their disks was deleted: volume.ErrBusy
// while a session has any. A session that is down may have some that nothing uses; they go with it.
// No session is no error.
func (i *Initiator) Logout(ctx context.Context, target string) error {
	if err := i.logout(ctx, target); err != nil {
		return fmt.Errorf("log out of iSCSI target %s: %w", target, err)
	}
	return nil
}

func (i *Initiator) logout(ctx context.Context, target string) error {
	unlock, err := i.targets.lock(ctx, target)
	if err != nil {
		return fmt.Errorf("%w: another operation on the target runs: %w", volume.ErrUnavailable, err)
	}
	defer unlock()
	sessions, err := i.to(ctx, target)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		err = errors.Join(err, i.logoutOf(ctx, s))
	}
	return err
}

func (i *Initiator) logoutOf(ctx context.Context, s Session) error {
	unlock, ok := i.hosts.tryLock(s.Host)
	if !ok {
		return fmt.Errorf("%w: an operation on a disk of session %d still runs", volume.ErrUnavailable, s.ID)
	}
	defer unlock()
	disks, err := i.disks(s)
	if err != nil {
		return err
	}
	if s.LoggedIn && len(disks) > 0 {
		return fmt.Errorf("%w: session %d still has %d disks, %s (%s) among them", volume.ErrBusy, s.ID, len(disks),
			disks[0].Name, disks[0].Identity)
	}
	by, err := i.usedDisk(s)
	if err != nil {
		return err
	}
	if by != "" {
		return fmt.Errorf("%w: %s", volume.ErrBusy, by)
	}
	return i.end(ctx, s)
}

// end logs out of a session, and waits until it is gone.
func (i *Initiator) end(ctx context.Context, s Session) error {
	// iscsiadm wants the record of the session's interface.
	if err := i.saveInterface(ctx, s.Initiator); err != nil {
		return err
	}
	err := i.command(ctx, "-m", "session", "-r", strconv.Itoa(s.ID), "--logout")
	for {
		sessions, sysfsErr := i.to(ctx, s.Target)
		if sysfsErr != nil {
			return errors.Join(err, sysfsErr)
		}
		there := false
		for _, other := range sessions {
			there = there || other.ID == s.ID
		}
		switch {
		case !there:
			return nil // even if iscsiadm has found nothing
		case err != nil:
			return fmt.Errorf("session %d: %w", s.ID, err)
		}
		if err := i.wait(ctx); err != nil {
			return fmt.Errorf("%w: the kernel still ends session %d: %w", volume.ErrUnavailable, s.ID, err)
		}
	}
}

// Forget removes our records of a target from the host's open-iscsi, and that of our interface
// after the last of them. It wants no session of ours to the target: volume.ErrBusy. No record is
// no error.
func (i *Initiator) Forget(ctx context.Context, target string) error {
	if err := i.forget(ctx, target); err != nil {
		return fmt.Errorf("forget iSCSI target %s: %w", target, err)
	}
	return nil
}

func (i *Initiator) forget(ctx context.Context, target string) error {
	if !targetName.MatchString(target) {
		return volume.Invalid("target", fmt.Sprintf("%.100q is no iSCSI name", target))
	}
	unlock, err := i.targets.lock(ctx, target)
	if err != nil {
		return fmt.Errorf("%w: another operation on the target runs: %w", volume.ErrUnavailable, err)
	}
	defer unlock()
	sessions, err := i.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.Target == target {
			return fmt.Errorf("%w: session %d is there", volume.ErrBusy, s.ID)
		}
	}
	return i.removeRecords(target, len(sessions) == 0)
}
