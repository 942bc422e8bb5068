package disk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
)

// elsewhere are options of ext4 and xfs that name another file or device of the node.
var elsewhere = []string{"journal_dev", "journal_path", "logdev", "rtdev", "loop", "offset"}

// Mount mounts the file system of a device on the directory target. That it is mounted there already, as read-only
// as is asked for, is no error; volume.ErrConflict if it is mounted with the other, attach.ErrNotOurs if something
// else is.
//
// A file system is mounted read-only without its journal (noload, norecovery) if the device refuses writes and the
// journal has changes that were not carried out. That is logged: the newest files may be missing or damaged.
//
// An XFS is mounted with nouuid: a clone of a volume, or a restored snapshot, has the UUID of its origin, and the
// kernel would mount only one of the two on a node.
func (t Tools) Mount(dev, target, fsType string, options []string, readOnly bool) error {
	if err := known(fsType); err != nil {
		return err
	}
	flags, own := mount.SplitOptions(options)
	for _, option := range own {
		if name, _, _ := strings.Cut(option, "="); slices.Contains(elsewhere, name) {
			return volume.Invalid("volume_capability.mount.mount_flags",
				fmt.Sprintf("has %.80q, which is not possible for a disk of an array", option))
		}
	}
	if readOnly {
		flags |= mount.ReadOnly
	}
	err := t.mount(dev, target, fsType, flags, own)
	return wrap(err, "mount %s of %s on %s", fsType, dev, target)
}

func (t Tools) mount(dev, target, fsType string, flags mount.Flags, own []string) error {
	readOnly := flags&mount.ReadOnly != 0
	switch there, err := attach.Look(target); {
	case err != nil:
		return err
	case there.Mounted:
		return sameMount(dev, target, fsType, readOnly)
	}
	if err := attach.NoSymlinks(target); err != nil {
		return err
	}
	without := "noload"
	if fsType == xfs {
		without = "norecovery"
		if !slices.Contains(own, "nouuid") {
			own = append(slices.Clip(own), "nouuid")
		}
	}
	err := mount.FileSystem(dev, target, fsType, flags, strings.Join(own, ","))
	if readOnly && errors.Is(err, unix.EROFS) {
		if err = mount.FileSystem(dev, target, fsType, flags, strings.Join(append(slices.Clip(own), without), ",")); err == nil {
			t.Log.Info("a file system is mounted without its journal, which has changes that were not carried out: "+
				"the disk refuses writes. Mount the volume once where it may be written to", logkeys.Device, dev, logkeys.Target, target)
		}
	}
	return explain(err, own)
}

// sameMount compares what is mounted at a target with what should be.
func sameMount(dev, target, fsType string, readOnly bool) error {
	number, err := blockDevice(dev)
	if err != nil {
		return err
	}
	there, err := at(target)
	switch {
	case err != nil:
		return err
	case there.Device != number || there.FSType != fsType || there.Root != "/":
		return foreign(there)
	case there.ReadOnly != readOnly:
		return fmt.Errorf("%w: it is mounted there, read-only %t", volume.ErrConflict, there.ReadOnly)
	}
	return nil
}

// explain says what the kernel's number means for a mount.
func explain(err error, own []string) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("the disk refuses writes; mount it read-only: %w", err)
	case errors.Is(err, unix.EUCLEAN):
		return fmt.Errorf("the file system is damaged, the kernel's log says how; repair it on the node: %w", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the kernel does not take the options %q, or does not know this file system; its log says which: %w", own, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("the kernel of the node does not have this file system: %w", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w: %w", volume.ErrBusy, err)
	}
	return err
}

func foreign(there attach.Mount) error {
	return fmt.Errorf("%w: %w: %s of %s, from %s", attach.ErrNotOurs, volume.ErrForeignMount, there.FSType, there.Source, there.Root)
}
