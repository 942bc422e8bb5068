package mount

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/internal/kernel"
)

// Mounter makes bind mounts. Make one with [New] or [NewExecutable]; it is safe
// for concurrent use on different targets.
type Mounter struct {
	// oldMountCalls says that the kernel lacks open_tree(2), move_mount(2) or
	// mount_setattr(2), so that mount(2) has to do.
	oldMountCalls atomic.Bool
	// noMountRoot says that statx(2) cannot tell mount points.
	noMountRoot atomic.Bool
	// locked makes mounts drop noexec; see [NewExecutable].
	locked func(error)
}

var _ mountutils.Interface = (*Mounter)(nil)

// New returns a Mounter for the mount namespace of this process. Its mounts inherit
// noexec, as all other flags.
func New() *Mounter { return &Mounter{} }

// Mount binds the directory source on the directory target. Both are absolute
// paths, and neither may be a symbolic link. Mounts below source do not come
// along.
//
// The options have to contain "bind"; the others are flags ([KnownFlag]). A
// flag that no option speaks of is inherited from the mount that source is on:
// inside a user namespace such flags are locked, and the kernel refuses to
// drop them. noexec is an exception, see [NewExecutable]. The file system type is
// ignored, as the kernel does for a bind.
//
// A target that is a mount point already gets another mount on top: look first
// with [Mounter.IsMountPoint]. After an error nothing new is mounted, unless
// the error says that undoing failed as well.
//
// Kernels before 5.12 need two steps, a bind and a remount with the flags, and
// a crash between them leaves a mount without its flags. There the flags also do
// not reach the copies that mount propagation has made in other mount namespaces
// by then.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	flags, bind, err := parseOptions(options)
	switch {
	case err != nil:
		return fmt.Errorf("mount %s on %s: %w", shown(source), target, err)
	case !bind:
		return fmt.Errorf("mount %s on %s: option %q is missing, and nothing but bind mounts is supported", shown(source), target, bindOption)
	}
	from, err := openDirectory(source)
	if err != nil {
		return fmt.Errorf("bind %s on %s: %w", shown(source), target, err)
	}
	defer unix.Close(from)
	onto, err := openDirectory(target)
	if err != nil {
		return fmt.Errorf("bind %s on %s: %w", shown(source), target, err)
	}
	defer unix.Close(onto)

	if !m.oldMountCalls.Load() {
		err = m.bindAtOnce(from, onto, flags)
		if !unsupported(err) {
			return wrap(err, "bind %s on %s", shown(source), target)
		}
		if errors.Is(err, unix.ENOSYS) {
			m.oldMountCalls.Store(true)
		}
	}
	return wrap(m.bindInSteps(from, onto, target, flags), "bind %s on %s", shown(source), target)
}

// Unmount takes away the topmost mount at target. The error wraps the kernel's:
// EBUSY says that files in it are in use, EINVAL that target is not a mount
// point, ENOENT that it does not exist. It is never a lazy or a forced unmount,
// because those end while somebody may still be writing.
func (m *Mounter) Unmount(target string) error {
	// A trailing slash would make the kernel follow a symbolic link after all.
	return wrap(kernel.Unmount(filepath.Clean(target)), "unmount %s", target)
}

// MountSensitive is Mount; it refuses sensitive options, which a bind mount
// does not have.
func (m *Mounter) MountSensitive(source, target, fstype string, options, sensitiveOptions []string) error {
	if len(sensitiveOptions) > 0 {
		return fmt.Errorf("mount %s on %s: a bind mount has no sensitive options", source, target)
	}
	return m.Mount(source, target, fstype, options)
}

// MountSensitiveWithoutSystemd is MountSensitive: systemd has no part in it.
func (m *Mounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, sensitiveOptions []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// MountSensitiveWithoutSystemdWithMountFlags is MountSensitive; it refuses
// mount flags, which are arguments of a mount command that is not run.
func (m *Mounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string, options, sensitiveOptions, mountFlags []string) error {
	if len(mountFlags) > 0 {
		return fmt.Errorf("mount %s on %s: there is no mount command to take the flags %q", source, target, mountFlags)
	}
	return m.MountSensitive(source, target, fstype, options, sensitiveOptions)
}

// wrap says what was tried in front of an error, and keeps nil as it is.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
