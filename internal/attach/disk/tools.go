package disk

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/volume"
)

// Tools works on disks, with the programs of the host.
type Tools struct {
	// Root is the host's root directory, in which mkfs, fsck and blkid are run by chroot; empty to run
	// them without.
	Root string
	// Log gets what succeeded in a way that people want to know.
	Log logr.Logger
}

// Content returns what is on a device: empty when it is proven to be empty, else the type of the file system.
func (t Tools) Content(ctx context.Context, dev string) (string, error) {
	return "", errors.ErrUnsupported
}

// Format makes a file system on a device that is proven to be empty.
func (t Tools) Format(ctx context.Context, dev, fsType string) error { return errors.ErrUnsupported }

// Reformat is Format on a device on which an earlier Format has not ended. It erases what is there.
func (t Tools) Reformat(ctx context.Context, dev, fsType string) error { return errors.ErrUnsupported }

// Check repairs a file system that is not mounted, as far as that is safe without a person.
func (t Tools) Check(ctx context.Context, dev, fsType string) error { return errors.ErrUnsupported }

// Mount mounts the file system of a device.
func (t Tools) Mount(dev, target, fsType string, options []string, readOnly bool) error {
	return errors.ErrUnsupported
}

// Grow makes the file system at path as large as its device, and returns the size of the device in bytes.
func (t Tools) Grow(path string) (int64, error) { return 0, errors.ErrUnsupported }

// BindDevice binds the node of a device on a file, which it makes.
func (t Tools) BindDevice(dev, file string) error { return errors.ErrUnsupported }

// DeviceAt returns the number of the device whose node is bound on a file.
func (t Tools) DeviceAt(file string) (uint64, error) { return 0, errors.ErrUnsupported }

// Bind binds a directory, or the file of a block device, on target, which it makes where it is missing.
func (t Tools) Bind(source, target string, options []string, readOnly bool) error {
	return errors.ErrUnsupported
}

// Unmount takes away all mounts at target; that there is none is no error.
func (t Tools) Unmount(target string) error { return errors.ErrUnsupported }

// Remove removes the empty directory or the empty file target, at which nothing is mounted.
func (t Tools) Remove(target string) error { return errors.ErrUnsupported }

// Stats returns how full the file system at path is, or how large the block device there is.
func (t Tools) Stats(path string) (volume.Stats, error) { return volume.Stats{}, errors.ErrUnsupported }
