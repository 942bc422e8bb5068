package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/attach"
	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
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
	table, err := attach.Table()
	if err != nil {
		return err
	}
	from, ok := attach.At(table, source)
	switch {
	case !ok:
		return fmt.Errorf("%w: nothing is mounted at %s", volume.ErrNotFound, source)
	case strings.HasSuffix(from.Root, removed):
		return fmt.Errorf("%w: the device is gone", volume.ErrNotFound)
	}
	if there, ok := attach.At(table, target); ok {
		return sameBinding(from, there, options)
	}
	options = append(options, "bind")
	if isNode(from) {
		return bindFile(source, target, options)
	}
	made, err := makeDir(target)
	if err != nil {
		return err
	}
	if err = mount.New().Mount(source, target, "", options); err != nil && made {
		err = errors.Join(err, kernel.Rmdir(target))
	}
	return err
}

// bindFile binds a device's node on a file, which it makes where it is missing.
func bindFile(source, target string, options []string) error {
	made, err := makeFile(target)
	if err != nil {
		return err
	}
	if err = mount.New().BindFile(source, target, options); err != nil && made {
		err = errors.Join(err, kernel.Remove(target))
	}
	return err
}

// sameBinding compares what is mounted at a target with what should be.
func sameBinding(from, there attach.Mount, options []string) error {
	if there.Device != from.Device || there.Root != from.Root {
		return foreign(there)
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

// isNode tells whether a mount shows one device's node: these are in memory.
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
	bound, there, err := deviceAt(file)
	switch {
	case err == nil && bound == number:
		return nil
	case err == nil:
		return foreign(there)
	case !errors.Is(err, volume.ErrNotFound):
		return err
	case there.Target != "":
		return foreign(there)
	}
	return bindFile(dev, file, []string{"bind"})
}

// DeviceAt returns the number of the device whose node is bound on a file. The error is volume.ErrNotFound where
// nothing is mounted, or where the device is gone, and attach.ErrNotOurs where something else is mounted. It asks
// neither the device nor the array.
func (t Tools) DeviceAt(file string) (uint64, error) {
	number, _, err := deviceAt(file)
	return number, wrap(err, "which device is at %s", file)
}

func deviceAt(file string) (number uint64, there attach.Mount, err error) {
	table, err := attach.Table()
	if err != nil {
		return 0, attach.Mount{}, err
	}
	there, ok := attach.At(table, file)
	switch {
	case !ok:
		return 0, attach.Mount{}, volume.ErrNotFound
	case strings.HasSuffix(there.Root, removed):
		return 0, there, fmt.Errorf("%w: the device is gone", volume.ErrNotFound)
	case !isNode(there):
		return 0, there, foreign(there)
	}
	// This asks devtmpfs, which is in memory.
	if number, err = blockDevice(file); err != nil {
		err = fmt.Errorf("%w: %w", attach.ErrNotOurs, err)
	}
	return number, there, err
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

// makeDir makes a directory, and tells whether it did; that there is one is no error.
func makeDir(path string) (made bool, err error) {
	err = kernel.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// makeFile makes an empty file, and tells whether it did; that there is something is no error.
func makeFile(path string) (made bool, err error) {
	file, err := kernel.Create(filepath.Clean(path), os.O_WRONLY|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}
