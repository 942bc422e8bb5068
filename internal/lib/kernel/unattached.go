package kernel

import (
	"strings"

	"golang.org/x/sys/unix"
)

// MountUnattached mounts the file system of a device read-only, for this process alone: mount is a handle of its top,
// and no mount namespace has it. Nothing propagates from it, no path leads into it. It goes when that handle and what
// was opened through it are closed, at the latest with the process. options are the file system's own, such as
// nouuid or errors=continue. It needs Linux 5.2.
func MountUnattached(device, fsType string, options ...string) (mount int, err error) {
	err = do("MountUnattached", at(device), func() error {
		mount, err = mountUnattached(device, fsType, append([]string{"ro"}, options...))
		return err
	})
	return mount, err
}

// MountAgain is [MountUnattached] for a file system that is there for writing: the kernel keeps one that was frozen
// when its last mount went, and this is the way back to it. Nothing can be written through the handle.
func MountAgain(device, fsType string, options ...string) (mount int, err error) {
	err = do("MountAgain", at(device), func() error {
		mount, err = mountUnattached(device, fsType, options)
		return err
	})
	return mount, err
}

func mountUnattached(device, fsType string, options []string) (int, error) {
	fs, err := unix.Fsopen(fsType, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "source", device); err != nil {
		return -1, err
	}
	for _, option := range options {
		if key, value, ok := strings.Cut(option, "="); ok {
			err = unix.FsconfigSetString(fs, key, value)
		} else {
			err = unix.FsconfigSetFlag(fs, option)
		}
		if err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	const attributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC |
		unix.MOUNT_ATTR_NOATIME
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
}
