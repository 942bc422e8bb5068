package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// Rescan makes the kernel learn the size that a disk has on the array, and returns it in bytes.
// attach.ErrNotOurs means that the array has another volume there by now.
func (i *Initiator) Rescan(ctx context.Context, device attach.Device) (bytes int64, err error) {
	unlock, err := i.hosts.lock(ctx, device.Host)
	if err != nil {
		return 0, fmt.Errorf("rescan %s: %w: another operation on the session runs: %w", device.Name, volume.ErrUnavailable, err)
	}
	defer unlock()
	bytes, err = i.rescan(ctx, device)
	if err != nil {
		return 0, fmt.Errorf("rescan %s: %w", device.Name, err)
	}
	return bytes, nil
}

func (i *Initiator) rescan(ctx context.Context, device attach.Device) (int64, error) {
	d, s, there, err := i.lookUp(ctx, device)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, volume.ErrNotFound
	case !s.LoggedIn:
		return 0, isDown(s)
	}
	is, err := i.inquire(d.Path)
	if err != nil {
		return 0, err
	}
	if is != device.Identity || d.Identity != device.Identity {
		return 0, fmt.Errorf("%w: it was %s, the kernel knows it as %s, and the array has %s there", attach.ErrNotOurs,
			device.Identity, d.Identity, is)
	}
	if err := write("1", d.dir, "rescan"); err != nil {
		return 0, err
	}
	text, err := attribute(d.dir, "block", d.Name, "size")
	if err != nil {
		return 0, err
	}
	const sector = 512 // whatever the disk's own
	sectors, err := strconv.ParseInt(text, 10, 64)
	if err != nil || sectors < 0 || sectors > (1<<63-1)/sector {
		return 0, fmt.Errorf("sysfs: %.60q is no size", text)
	}
	return sectors * sector, nil
}

// Delete writes what the kernel holds back for a disk, and removes the disk from the node. The
// array keeps the LUN. A disk that is gone is no error. volume.ErrBusy means that the disk is in
// use, and says by what; attach.ErrNotOurs that it is another volume's by now.
//
// Data that cannot be written is lost, and Delete says so once: it removes the disk all the same.
func (i *Initiator) Delete(ctx context.Context, device attach.Device) error {
	unlock, err := i.hosts.lock(ctx, device.Host)
	if err != nil {
		return fmt.Errorf("remove %s: %w: another operation on the session runs: %w", device.Name, volume.ErrUnavailable, err)
	}
	defer unlock()
	d, _, there, err := i.lookUp(ctx, device)
	switch {
	case err != nil:
		return fmt.Errorf("remove %s: %w", device.Name, err)
	case !there:
		return nil
	case d.Identity != device.Identity:
		return fmt.Errorf("remove %s: %w: it is %s, not %s", d.Name, attach.ErrNotOurs, d.Identity, device.Identity)
	}
	by, err := i.use(d)
	if err != nil {
		return fmt.Errorf("remove %s: %w", d.Name, err)
	}
	if by != "" {
		return fmt.Errorf("remove %s: %w: it is in use (%s); unmount it and end what uses it", d.Name, volume.ErrBusy, by)
	}
	if err := i.remove(ctx, d, true); err != nil {
		return fmt.Errorf("remove %s (%s): %w", d.Name, d.Identity, err)
	}
	return nil
}

// remove removes a disk that nothing uses. While it does, nothing can mount it. The kernel writes
// what it holds back of a disk when the last process closes it; with flush, remove says if that
// failed, and makes the array write what it holds back.
func (i *Initiator) remove(ctx context.Context, d found, flush bool) error {
	var flushed error
	file, err := kernel.Open(d.Path, os.O_RDONLY|unix.O_EXCL)
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: %s is mounted in another mount namespace, or part of another block device", volume.ErrBusy, d.Name)
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !gone(err):
		// So may a disk whose LUN the array has unmapped.
		flushed = err
	case err == nil:
		defer file.Close()
		if flush {
			flushed = kernel.Sync(file)
		}
	}
	if err := write("1", d.dir, "delete"); err != nil && !gone(err) {
		return errors.Join(err, flushed)
	}
	for {
		if _, err := os.Stat(d.dir); gone(err) {
			break
		}
		if err := i.wait(ctx); err != nil {
			return fmt.Errorf("%w: the kernel still removes %s: %w", volume.ErrUnavailable, d.Name, err)
		}
	}
	if flush && flushed != nil {
		return fmt.Errorf("the disk %s is removed, but what was not on the array yet is lost: %w", d.Name, flushed)
	}
	return nil
}
