package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
)

// removed is what the mount table adds to the path of what was removed.
const removed = "//deleted"

// Bind binds the directory that is mounted at source, or the device whose node is bound there, on target, which
// it makes where it is missing. options are flags of a mount (mount.KnownFlag); a flag that none of them names is
// that of the mount at source. That the same is mounted there already is no error; volume.ErrConflict if it is
// mounted with other flags, attach.ErrNotOurs if something else is. The error is volume.ErrNotFound if nothing is
// mounted at source.
//
// A device that is bound read-only can be written to all the same: the kernel asks the flags of a mount only
// for files. The container runtime lets a pod open its device as Kubernetes says.
func (t Tools) Bind(source, target string, options []string, readOnly bool) error {
	options = slices.Clone(options)
	if readOnly {
		options = append(options, "ro")
	}
	return wrap(bind(source, target, options), "bind %s on %s", source, target)
}

func bind(source, target string, options []string) error {
	from, err := attach.Look(source)
	switch {
	case err != nil:
		return err
	case !from.Mounted:
		return fmt.Errorf("%w: nothing is mounted at %s", volume.ErrNotFound, source)
	case from.Gone:
		return fmt.Errorf("%w: the device is gone", volume.ErrNotFound)
	}
	if err := attach.NoSymlinks(target); err != nil {
		return err
	}
	makeTarget := makeFile
	if from.Directory {
		makeTarget = makeDir
	}
	made, err := makeTarget(target)
	if err != nil {
		return err
	}
	if !made {
		switch there, err := attach.Look(target); {
		case err != nil:
			return err
		case there.Mounted:
			return sameBinding(source, target, options)
		}
	}
	options = append(options, "bind")
	if !from.Directory {
		return bindFile(source, target, options, made)
	}
	if err = mount.New().Mount(source, target, "", options); err != nil && made {
		err = errors.Join(err, kernel.Rmdir(target))
	}
	return err
}

// bindFile binds a device's node on a file. made: the file was made for that, and goes if it fails.
func bindFile(source, target string, options []string, made bool) error {
	err := mount.New().BindFile(source, target, options)
	if err != nil && made {
		err = errors.Join(err, kernel.Remove(target))
	}
	return err
}

// sameBinding compares what is mounted at a target with what should be.
func sameBinding(source, target string, options []string) error {
	table, err := attach.Table()
	if err != nil {
		return err
	}
	from, isSource := attach.At(table, source)
	there, isTarget := attach.At(table, target)
	if !isSource || !isTarget {
		return fmt.Errorf("%w: a mount went while it was looked at", volume.ErrBusy)
	}
	if there.Device != from.Device || there.Root != from.Root {
		// A pod may have mounted something on top, as a sidecar with a FUSE file system does.
		beneath := slices.DeleteFunc(table, func(m attach.Mount) bool {
			return m.Target != there.Target || m.Device != from.Device || m.Root != from.Root
		})
		if len(beneath) == 0 {
			return foreign(there)
		}
		there = beneath[len(beneath)-1]
	}
	for _, option := range options {
		// The table has no line for what is not there, and for how files are accessed unless told otherwise.
		is := slices.Contains(there.Flags, option)
		switch option {
		case "exec":
			is = !slices.Contains(there.Flags, "noexec")
		case "strictatime":
			is = !slices.Contains(there.Flags, "noatime") && !slices.Contains(there.Flags, "relatime")
		}
		if !is {
			return fmt.Errorf("%w: it is mounted there without %s", volume.ErrConflict, option)
		}
	}
	if !slices.Contains(options, "ro") && slices.Contains(there.Flags, "ro") && !slices.Contains(from.Flags, "ro") {
		return fmt.Errorf("%w: it is mounted there read-only", volume.ErrConflict)
	}
	return nil
}

// isNode reports whether a mount shows one device's node: these are in memory.
func isNode(m attach.Mount) bool {
	return (m.FSType == "devtmpfs" || m.FSType == "tmpfs") && m.Root != "/"
}

// BindDevice binds the node of a device on a file, which it makes where it is missing. That makes the device visible
// in the mount table, for any daemon. That it is bound there already is no error; attach.ErrNotOurs if something
// else is.
func (t Tools) BindDevice(dev, file string) error {
	return wrap(bindDevice(dev, file), "bind the device %s on %s", dev, file)
}

func bindDevice(dev, file string) error {
	number, err := blockDevice(dev)
	if err != nil {
		return err
	}
	if err := attach.NoSymlinks(file); err != nil {
		return err
	}
	made, err := makeFile(file)
	var there attach.Point
	if err == nil && !made {
		there, err = attach.Look(file)
	}
	switch {
	case err != nil:
		return err
	case !there.Mounted:
		return bindFile(dev, file, []string{"bind"}, made)
	case there.Node == number && !there.Gone:
		return nil
	}
	return foreignAt(file)
}

// DeviceAt returns the number of the device whose node is bound on a file. The error is volume.ErrNotFound where
// nothing is mounted, or where the device is gone, and attach.ErrNotOurs where something else is mounted. It asks
// neither the device nor the array.
func (t Tools) DeviceAt(file string) (uint64, error) {
	number, err := deviceAt(file)
	return number, wrap(err, "which device is at %s", file)
}

func deviceAt(file string) (uint64, error) {
	there, err := attach.Look(file)
	switch {
	case err != nil:
		return 0, err
	case !there.Mounted:
		return 0, volume.ErrNotFound
	case there.Gone:
		return 0, fmt.Errorf("%w: the device is gone", volume.ErrNotFound)
	case there.Node == 0:
		return 0, foreignAt(file)
	}
	return there.Node, nil
}

// foreignAt is the error of what is mounted at a path and should not be.
func foreignAt(path string) error {
	table, err := attach.Table()
	if err != nil {
		return err
	}
	there, _ := attach.At(table, path)
	return foreign(there)
}

// MakeDir makes a directory; that there is one is no error.
func (t Tools) MakeDir(path string) error {
	_, err := makeDir(path)
	return err
}

// Pods of any user go through these; what they may do is up to what is mounted.
const (
	dirMode  = 0o750
	fileMode = 0o600
)

// makeDir makes a directory, and reports whether it did; that there is one is no error.
func makeDir(path string) (made bool, err error) {
	err = kernel.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// makeFile makes an empty file, and reports whether it did; that there is something is no error.
func makeFile(path string) (made bool, err error) {
	err = kernel.Mkfile(filepath.Clean(path), fileMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create %s: %w", path, err)
	}
	return true, nil
}
