package iscsi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// Scan makes one LUN of our session to a target a disk, and returns it when it is the volume that is wanted, as far as
// the disk itself tells; see [Wanted]. It asks the array for no other LUN. A disk that is already there is asked again
// who it is.
//
// attach.ErrNotOurs means that the array has another volume at the LUN, or that a disk of another
// volume is still in use there. volume.ErrBusy means that the volume is still in use as another
// disk, volume.ErrNotFound that the array has no such LUN for this node, volume.ErrUnavailable that
// no session carries I/O.
//
// A disk that is left from another volume, which had the LUN before, is removed if nothing uses it. If something
// does, it is taken offline: its I/O would go to the volume that has the LUN now.
func (i *Initiator) Scan(ctx context.Context, target string, lun int, w Wanted) (attach.Device, error) {
	device, err := i.scan(ctx, target, lun, w)
	if err != nil {
		return attach.Device{}, fmt.Errorf("LUN %d of iSCSI target %s: %w", lun, target, err)
	}
	return device, nil
}

func (i *Initiator) scan(ctx context.Context, target string, lun int, w Wanted) (attach.Device, error) {
	sessions, err := i.to(ctx, target)
	if err != nil {
		return attach.Device{}, fmt.Errorf("%w: look for the session: %w", volume.ErrUnavailable, err)
	}
	s, ok := best(sessions)
	if !ok {
		return attach.Device{}, fmt.Errorf("%w: there is no iSCSI session to %s any more; log in again", volume.ErrUnavailable, target)
	}
	unlock, ok := i.hosts.tryLock(s.Host)
	if !ok {
		if unlock, err = i.hosts.lock(ctx, s.Host); err != nil {
			return attach.Device{}, fmt.Errorf("%w: another operation on the session runs: %w", volume.ErrUnavailable, err)
		}
		sessions, err = i.to(ctx, target) // there may be others by now
	}
	defer unlock()
	if err == nil {
		err = carriesIO(sessions, s)
	}
	if err == nil {
		err = i.nowhereElse(ctx, sessions, s, lun, w.is)
	}
	if err != nil {
		return attach.Device{}, err
	}
	d, there, err := i.at(s, lun)
	if err != nil {
		return attach.Device{}, err
	}
	if there {
		stale, err := i.judge(d, w)
		switch {
		case err != nil:
			return attach.Device{}, err
		case !stale:
			return d.Device, i.alone(ctx, d)
		}
		i.log.Info("removes the disk of a volume that had the LUN before", about(d)...)
		if err := i.remove(ctx, d, false); err != nil {
			return attach.Device{}, err
		}
	}
	if err := i.noVacancy(); err != nil {
		return attach.Device{}, err
	}
	if d, err = i.appear(ctx, s, lun); err != nil {
		return attach.Device{}, err
	}
	if err := i.alone(ctx, d); err != nil {
		return attach.Device{}, err
	}
	is, err := i.ask(ctx, d)
	if err == nil && is == d.Identity && w.MayBe(is) {
		if err = i.nowhereElse(ctx, sessions, s, lun, func(o attach.Identity) bool { return o == is }); err == nil {
			return d.Device, nil
		}
	}
	// No other call can know this disk yet.
	err = errors.Join(err, i.remove(ctx, d, false))
	switch {
	case is != (attach.Identity{}) && !w.MayBe(is):
		err = errors.Join(notWanted(is, w), err)
	case err == nil && d.Identity == (attach.Identity{}):
		// Without it the disk could not be distinguished from others later, when it is unstaged.
		err = fmt.Errorf("%w: the kernel has no name of the disk %s (vpd_pg80, vpd_pg83)", volume.ErrUnavailable, d.Name)
	case err == nil:
		err = fmt.Errorf("%w: the disk's name changed from %s to %s while it appeared", volume.ErrUnavailable, d.Identity, is)
	}
	return attach.Device{}, err
}

// notWanted is the error of a disk that is another one than the volume's, or does not say which it is.
func notWanted(is attach.Identity, w Wanted) error {
	if is.WWID == "" && !w.isAnother(is) {
		return fmt.Errorf("%w: the disk has the serial number %s, which is not the ID of volume %s, and no name that is its own alone "+
			"(VPD page 0x83)", attach.ErrNotOurs, is.Serial, w)
	}
	return fmt.Errorf("%w: the array has %s there, not volume %s", attach.ErrNotOurs, is, w)
}

// alone makes sure that no pod has a disk by having the node of an earlier one, which had its number and vanished, as by
// a logout on the node: it removes the disk, and fails with volume.ErrBusy. A disk that is in use stays.
func (i *Initiator) alone(ctx context.Context, d found) error {
	at, err := i.namesake(d.Name)
	if at == "" || err != nil {
		return err
	}
	if by, err := i.use(d); by != "" || err != nil {
		return err
	}
	i.refuse(d.Name)
	i.log.Info("removes a disk that a pod could read: it has the number of one that vanished under the pod", append(about(d), "mount", at)...)
	return errors.Join(hasNamesake(d.Name, at), i.remove(ctx, d, false))
}

// noVacancy fails as alone does, before the next disk appears, where the last one got a number that it must not have:
// the kernel gives a new disk the lowest number that is free.
func (i *Initiator) noVacancy() error {
	name := i.refusedLast()
	if name == "" {
		return nil
	}
	_, err := kernel.Stat(filepath.Join(i.sysfs, "block", name))
	switch {
	case err == nil:
		return nil // another disk has it by now
	case !gone(err):
		return err
	}
	at, err := i.namesake(name)
	if at == "" || err != nil {
		return err
	}
	return hasNamesake(name, at)
}

func (i *Initiator) refuse(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = name
}

func (i *Initiator) refusedLast() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refused
}

func hasNamesake(name, at string) error {
	return fmt.Errorf("%w: the kernel gives it the number of %s, a disk that vanished, and that one's node is still mounted at %s; "+
		"delete the pod that has it", volume.ErrBusy, name, at)
}

func about(d found) []any {
	return []any{"device", d.Name, "serial", d.Serial, "wwid", d.WWID, "iscsiTarget", d.Target, "lun", d.LUN}
}

// carriesIO returns an error for a session that is down or gone, of those that there are now.
func carriesIO(all []Session, s Session) error {
	for _, now := range all {
		switch {
		case now.ID != s.ID:
		case now.LoggedIn:
			return nil
		default:
			return isDown(now)
		}
	}
	return fmt.Errorf("%w: iSCSI session %d is not there any more; log in again", volume.ErrUnavailable, s.ID)
}

func isDown(s Session) error {
	return fmt.Errorf("%w: the array has not answered on iSCSI session %d to %s at %s since %s; iscsid connects again when it does",
		volume.ErrUnavailable, s.ID, s.Target, s.Address, s.Since.Format("15:04:05 MST"))
}

// nowhereElse returns an error where the volume is in use as another disk: at the LUN that it had
// before, or behind a session that is down. Two disks of one volume must not be in use together,
// because each has a cache of its own.
func (i *Initiator) nowhereElse(ctx context.Context, sessions []Session, s Session, lun int, is func(attach.Identity) bool) error {
	for _, other := range sessions {
		disks, err := i.disksWith(other, is)
		if err != nil {
			return err
		}
		for _, d := range disks {
			if !is(d.Identity) || other.ID == s.ID && d.LUN == lun {
				continue
			}
			by, err := i.use(d)
			if err != nil {
				return err
			}
			if by != "" {
				return fmt.Errorf("%w: the volume (%s) is in use as %s, LUN %d of iSCSI session %d (%s); unmount it first",
					volume.ErrBusy, d.Identity, d.Name, d.LUN, other.ID, by)
			}
			if !other.LoggedIn {
				continue // it goes with the session
			}
			i.log.Info("removes the disk that the volume had at another LUN", about(d)...)
			if err := i.remove(ctx, d, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge compares a disk that was there before with what the array has at its LUN now. A stale one
// has to be removed and found again: the kernel knows the size and the features of the volume that
// it was made for.
func (i *Initiator) judge(d found, w Wanted) (stale bool, err error) {
	is, err := i.inquire(d.Path)
	ours, was := err == nil && w.is(is), w.is(d.Identity)
	switch {
	case ours && is == d.Identity:
		return false, nil
	case err == nil && is == d.Identity && !w.MayBe(is):
		return false, notWanted(is, w)
	case err != nil && !errors.Is(err, kernel.ErrSCSI) && !gone(err): // one that is offline does not open
		return false, err
	}
	by, useErr := i.use(d)
	switch {
	case useErr != nil:
		return false, useErr
	case by == "":
		return true, nil
	case err != nil && was:
		return false, fmt.Errorf("%w: %s is in use (%s), and the array does not serve it any more: %w", volume.ErrUnavailable, d.Name, by, err)
	case err == nil && !ours && was:
		return false, fmt.Errorf("%w: %s is in use (%s) as volume %s, and the array has put %s there; end its pods",
			attach.ErrNotOurs, d.Name, by, w, is)
	}
	var offline error
	if ours {
		offline = i.offline(d, is)
	}
	err = fmt.Errorf("%w: %s is still in use (%s) as %s, which had the LUN before; end its pods",
		attach.ErrNotOurs, d.Name, by, d.Identity)
	return false, errors.Join(err, offline)
}

// offline makes the I/O of a disk fail that is in use and was unmapped, and whose LUN the array has given to another
// volume since: what its pods write would go to that volume. A node that was away for a while may have one.
func (i *Initiator) offline(d found, now attach.Identity) error {
	if d.Identity == (attach.Identity{}) {
		return nil // it may be the volume
	}
	i.log.Info("takes a disk offline that is in use: the array has given its LUN to another volume", append(about(d), "now", now.String())...)
	if err := write("offline\n", d.dir, "state"); err != nil { // without the end of the line the kernel does not take it
		return fmt.Errorf("take %s offline, whose I/O goes to %s: %w", d.Name, now, err)
	}
	return nil
}

// appear scans a LUN until it is a disk.
func (i *Initiator) appear(ctx context.Context, s Session, lun int) (found, error) {
	limited, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	for {
		if err := i.order(s, lun); err != nil {
			return found{}, fmt.Errorf("scan: %w", err)
		}
		d, there, err := i.at(s, lun)
		if there || err != nil {
			return d, err
		}
		now, err := i.to(ctx, s.Target)
		if err == nil {
			err = carriesIO(now, s)
		}
		if err != nil {
			return found{}, err
		}
		if err := i.wait(limited); err != nil {
			if ctx.Err() != nil {
				return found{}, fmt.Errorf("%w: no disk appeared: %w", volume.ErrUnavailable, err)
			}
			return found{}, fmt.Errorf("%w: no disk appeared in %s; does the array still have the volume attached to this node's initiator name?",
				volume.ErrNotFound, i.patience)
		}
	}
}

// order lets the kernel look for a LUN. One that it knows under one of two numbers is not looked for under the other
// one: that could make a second disk of the volume, even if the first is not a disk yet.
func (i *Initiator) order(s Session, lun int) error {
	numbers := encodings(lun)
	if len(numbers) == 1 {
		return i.scanFor(s, lun)
	}
	there, err := i.knows(s, numbers...)
	for _, encoded := range numbers {
		if there || err != nil {
			return err
		}
		if err := i.scanFor(s, encoded); err != nil {
			return err
		}
		there, err = i.knows(s, encoded)
	}
	return err
}

// scanFor scans one number. The kernel does not scan a LUN again that it has. Of an iSCSI session channel and target
// are 0.
func (i *Initiator) scanFor(s Session, encoded int) error {
	return write("0 0 "+strconv.Itoa(encoded), i.class("scsi_host", "host"+strconv.Itoa(s.Host), "scan"))
}

// knows reports whether the kernel has one of these LUNs, be it a disk or not.
func (i *Initiator) knows(s Session, encoded ...int) (bool, error) {
	for _, number := range encoded {
		if _, err := kernel.Stat(i.lunDir(s, number)); err == nil || !gone(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// ask asks a disk which one it is. sysfs has a new disk a moment before its node in /dev can be opened.
func (i *Initiator) ask(ctx context.Context, d found) (attach.Identity, error) {
	limited, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	for {
		is, err := i.inquire(d.Path)
		if !gone(err) {
			return is, err
		}
		if i.wait(limited) != nil {
			return is, fmt.Errorf("%w: %s cannot be opened: %w", volume.ErrUnavailable, d.Path, err)
		}
	}
}
