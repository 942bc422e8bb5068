package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/workload"
)

// foreignName is the directory in a volume on which something is mounted.
const foreignName = "soak-mount"

// ErrTakenAway says that the driver took a mount away that was not its own, or
// that was in use.
var ErrTakenAway = errors.New("mount taken away")

// Hold keeps a directory of the target open, as a process does that outlives
// its pod: the target cannot be unmounted until release is called.
func Hold(v *history.Volume) (release func() error, err error) {
	held, err := os.Open(v.Target)
	if err != nil {
		return nil, fmt.Errorf("hold the target: %w", err)
	}
	id, err := host.MountID(v.Target)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold the target: %w", err), held.Close())
	}
	relieve := v.Afflict(workload.BusyTarget, "a process holds the target")
	return func() error {
		defer relieve()
		there, err := host.HasMount(id)
		if err == nil && !there {
			err = fmt.Errorf("%w: the target was unmounted although a process has it open, so it was detached lazily", ErrTakenAway)
		}
		return errors.Join(err, held.Close())
	}, nil
}

// MountInData binds the source to a directory in the data directory, where the
// pod does not see it. It is there until release is called.
func MountInData(v *history.Volume, source string) (release func() error, err error) {
	return mount(v, workload.ForeignMount, v.Data, source)
}

// MountInTarget binds the source to a directory in the target, as a pod does
// whose mounts propagate to the node. It is there until release is called.
func MountInTarget(v *history.Volume, source string) (release func() error, err error) {
	return mount(v, workload.NestedMount, v.Target, source)
}

func mount(v *history.Volume, kind workload.FaultKind, dir, source string) (release func() error, err error) {
	// A read-only target has no room for a new directory, but its data has.
	if err := os.Mkdir(filepath.Join(v.Data, foreignName), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	point := filepath.Join(dir, foreignName)
	relieve := v.Afflict(kind, fmt.Sprintf("%s is mounted on %s", source, point))
	if err := host.Bind(source, point); err != nil {
		relieve()
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	id, err := host.MountID(point)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", kind, err), host.Unmount(point))
	}
	return func() error {
		defer relieve()
		// The driver may have moved the directory around it.
		err := host.UnmountID(id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: what was mounted on %s is no longer", ErrTakenAway, point)
		case err != nil:
			return fmt.Errorf("%s: %w", kind, err)
		}
		return nil
	}, nil
}

// Remove removes the data directory, as a person does who cleans up the node.
// It is no error if the driver did so first.
func Remove(v *history.Volume) error {
	v.Afflict(workload.VolumeRemoved, "the data directory is removed")
	return remove(v)
}

// Replace puts a symlink to the given directory where the data directory was.
// It is no error if the driver has removed it first: then nothing is replaced, and nothing befalls the volume.
func Replace(v *history.Volume, by string) error {
	if _, err := os.Lstat(v.Data); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	v.Afflict(workload.VolumeSymlink, "the data directory is replaced by a symlink to "+by)
	if err := remove(v); err != nil {
		return err
	}
	if err := os.Symlink(by, v.Data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the data directory: %w", err)
	}
	return nil
}

func remove(v *history.Volume) error {
	if err := os.RemoveAll(v.Data); err != nil {
		return fmt.Errorf("remove the data directory: %w", err)
	}
	return nil
}

// volumeData is the file in which a kubelet notes what it mounts.
const volumeData = "vol_data.json"

// Undercut removes the directories of a volume that the kubelet made, and the
// target if it is there, as far as that goes: what is mounted or has something
// in it stays. The kubelet's housekeeping does so when a pod is deleted while
// its volumes are being mounted.
func Undercut(v *history.Volume) error {
	v.Afflict(workload.PodRemoved, "the pod's directory is removed under the driver")
	dir := filepath.Dir(v.Target)
	csi := filepath.Dir(dir)
	volumes := filepath.Dir(csi)
	for _, path := range []string{v.Target, filepath.Join(dir, volumeData), dir, csi, volumes, filepath.Dir(volumes)} {
		err := os.Remove(path)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EBUSY):
			return nil // so it goes for a kubelet, too
		default:
			return fmt.Errorf("remove the pod's directory: %w", err)
		}
	}
	return nil
}

// Uproot takes the mount away from the target and notes that the pod's directory
// is about to follow, as a person does who cleans up a node; or that a part
// of it stays, as with a kubelet after a reboot.
func Uproot(v *history.Volume, leave bool) error {
	how := "the target is unmounted and the pod's directory removed by hand"
	if leave {
		how = "the target is unmounted, and the kubelet leaves a part of the pod's directory behind"
	}
	v.Afflict(workload.PodRemoved, how)
	if err := host.Unmount(v.Target); err != nil {
		return fmt.Errorf("take the mount away: %w", err)
	}
	return nil
}
