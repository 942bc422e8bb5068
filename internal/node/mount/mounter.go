// Package mount makes, inspects and takes away bind mounts of directories by direct system calls,
// behind the Interface of k8s.io/mount-utils.
//
// It promises:
//
//   - From Linux 5.12 on a mount appears with its flags or not at all, also in the copies that
//     mount propagation makes in other mount namespaces. See [Mounter.Mount] for older kernels.
//   - It does not follow the last element of a path when that is a symbolic link.
//   - An unmount is neither lazy nor forced, and the error wraps the kernel's.
//   - To tell whether a path is a mount point costs the same with ten mounts and with ten thousand.
//     Functions that read the mount table say so.
//
// It takes no locks. The caller prevents two operations on one target at the same time: a look at a
// mount point may make an unmount of it fail with EBUSY.
//
// The fallbacks for old kernels and the mount table need /proc.
package mount

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// ErrTooMany: the mount namespace has as many mounts as it may have. The kernel has the number of a full disk for that.
var ErrTooMany = errors.New("there are as many mounts as the sysctl fs.mount-max allows: raise it, or see what makes mounts on the node")

// Mounter makes bind mounts. It is safe for concurrent use on different targets.
type Mounter struct {
	// oldMountCalls says that the kernel lacks open_tree(2), move_mount(2) or mount_setattr(2), so
	// that mount(2) is used instead.
	oldMountCalls atomic.Bool
	// noMountRoot says that statx(2) cannot tell mount points.
	noMountRoot atomic.Bool
	// locked makes mounts drop noexec; see [NewExecutable].
	locked func(error)
}

// New returns a Mounter for the mount namespace of this process.
func New() *Mounter { return &Mounter{} }

// NewExecutable returns a [Mounter] whose mounts do not inherit noexec from the mount that their
// source is on. The kernel may refuse that inside a user namespace, where the flag is locked. Then
// the mount has noexec, and locked is called with the kernel's error, once; only the option exec
// makes that an error of [Mounter.Mount].
func NewExecutable(locked func(error)) *Mounter {
	var once sync.Once
	m := New()
	m.locked = func(err error) { once.Do(func() { locked(err) }) }
	return m
}

// Mount binds the directory source on the directory target, both absolute paths and no symbolic
// links. It does not bind the mounts below source, and ignores the file system type.
//
// The options have to contain "bind"; the others are flags ([KnownFlag]). A flag that no option
// names is inherited from the mount that source is on: the kernel refuses to drop flags that are
// locked inside a user namespace. noexec is an exception, see [NewExecutable].
//
// A target that is a mount point already gets another mount on top. After an error nothing new is
// mounted, unless the error says that undoing failed as well.
//
// Kernels before 5.12 need two steps, a bind and a remount with the flags. A crash between them
// leaves a mount without its flags, and the flags do not reach the copies that mount propagation
// has made in other mount namespaces by then.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	return m.bind(source, target, options, ofDirectories)
}

// bind binds source on target, which both are of a kind.
func (m *Mounter) bind(source, target string, options []string, of kind) error {
	flags, bind, err := parseOptions(options)
	switch {
	case err != nil:
		return fmt.Errorf("mount %s on %s: %w", shown(source), target, err)
	case !bind:
		return fmt.Errorf("mount %s on %s: option %q is missing, and nothing but bind mounts is supported", shown(source), target, bindOption)
	}
	if filepath.IsAbs(source) && filepath.IsAbs(target) && !m.oldMountCalls.Load() {
		switch err = m.bindAtOnce(filepath.Clean(source), filepath.Clean(target), flags, of); {
		case err == nil:
			return nil
		case errors.Is(err, unix.ENOSYS):
			m.oldMountCalls.Store(true)
		case !unsupported(err):
			// The kernel has one number for most mistakes.
			if wrong := openBoth(source, target, of, func(_, _ int) error { return nil }); wrong != nil {
				err = wrong
			}
			return fmt.Errorf("bind %s on %s: %w", shown(source), target, err)
		}
	}
	err = openBoth(source, target, of, func(from, onto int) error { return m.bindInSteps(from, onto, target, flags, of.open) })
	return wrap(err, "bind %s on %s", shown(source), target)
}

// kind is what is bound.
type kind struct {
	open func(path string) (int, error)
	// fits reports whether a type, as of stat(2), is one of the kind.
	fits func(mode uint32) bool
}

var (
	ofDirectories = kind{openDirectory, func(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFDIR }}
	ofFiles       = kind{openFile, isFile}
)

// openBoth calls f with handles of source and target.
func openBoth(source, target string, of kind, f func(from, onto int) error) error {
	from, err := of.open(source)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	onto, err := of.open(target)
	if err != nil {
		return err
	}
	defer unix.Close(onto)
	return f(from, onto)
}

// Unmount takes away the topmost mount at target. The error wraps the kernel's: EBUSY says that
// files in it are in use, EINVAL that target is not a mount point, ENOENT that it does not exist.
func (m *Mounter) Unmount(target string) error {
	return wrap(kernel.Unmount(filepath.Clean(target)), "unmount %s", target)
}

// bindAtOnce binds source on target, with its flags from the first moment.
func (m *Mounter) bindAtOnce(source, target string, flags change, of kind) error {
	tree, err := kernel.OpenTree(source)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	// Until it is attached, closing the handle takes the new mount away again.
	defer unix.Close(tree)
	from, err := LookOpen(tree)
	if err != nil {
		return fmt.Errorf("look at %s: %w", shown(source), err)
	}
	onto := from
	// The kernel sees to it that either both are directories or none is.
	if from.Mode&unix.S_IFMT != unix.S_IFDIR {
		if onto, err = LookCached(target); err != nil {
			return err
		}
	}
	if !of.fits(from.Mode) || !of.fits(onto.Mode) {
		return fmt.Errorf("%w: one of them is of another type", unix.EINVAL)
	}
	// A copy of a shared mount is a peer of it: the kernel repeats every later mount below the one
	// in the other. A private copy shares, once attached, only what the target's mount shares.
	err = m.setFlags(flags, func(c change) error { return setAttributes(tree, c, unix.MS_PRIVATE) })
	if err != nil {
		return err
	}
	return wrap(tooMany(kernel.MoveMount(tree, target)), "move_mount")
}

// setAttributes changes the flags of the mount that fd is the root of, and its propagation unless
// that is 0.
func setAttributes(fd int, flags change, propagation uint64) error {
	err := kernel.MountSetattr(fd, &unix.MountAttr{
		Attr_set: flags.set,
		// The kernel insists on clearing the whole field to set an atime mode, which clear does,
		// and accepts no bit of the rest in both.
		Attr_clr:    flags.clear,
		Propagation: propagation,
	})
	return wrap(err, "mount_setattr")
}

// unsupported reports whether err may mean that the kernel, or a system call filter that is older
// than the call, does not know the call. Such filters say EPERM; a real EPERM is found again by the
// older way.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// bindInSteps does what bindAtOnce does with mount(2) alone: bind first, then set the flags, and
// unmount again when that fails. target is the path of onto, which open opens.
func (m *Mounter) bindInSteps(from, onto int, target string, flags change, open func(string) (int, error)) error {
	if err := tooMany(kernel.Mount(handlePath(from), handlePath(onto), "", unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if m.withoutNoexec(flags) == (change{}) {
		return nil
	}
	// onto is below the new mount now; the path leads to its root.
	err := m.setFlags(flags, func(c change) error { return remount(target, c, open) })
	if err == nil {
		return nil
	}
	if undo := kernel.Unmount(filepath.Clean(target)); undo != nil {
		return fmt.Errorf("%w; the mount is still there: unmount %s: %w", err, target, undo)
	}
	return err
}

// remount changes the flags of the mount at target with mount(2), which replaces all of them: the
// others have to be read first and repeated. open opens the target.
func remount(target string, flags change, open func(string) (int, error)) error {
	fd, err := open(target)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := kernel.Fstatfs(fd)
	if err != nil {
		return fmt.Errorf("read the mount's flags: %w", err)
	}
	before := attributesOf(uint64(st.Flags))
	after := flags.apply(before)
	if flags.set == 0 && after == before {
		return nil // what is to be cleared is not there
	}
	ms := remountFlags(after)
	return wrap(kernel.Mount("", handlePath(fd), "", uintptr(unix.MS_REMOUNT|unix.MS_BIND|ms), ""), "set the mount's flags")
}

// withoutNoexec adds to flags, which the options ask for, that noexec goes where m drops it.
func (m *Mounter) withoutNoexec(flags change) change {
	if m.locked != nil && (flags.set|flags.clear)&unix.MOUNT_ATTR_NOEXEC == 0 {
		flags.clear |= unix.MOUNT_ATTR_NOEXEC
	}
	return flags
}

// setFlags calls set with the flags that the options ask for, first without noexec. If the kernel
// refuses that, noexec stays.
func (m *Mounter) setFlags(flags change, set func(change) error) error {
	wanted := m.withoutNoexec(flags)
	refused := set(wanted)
	if wanted == flags || !errors.Is(refused, unix.EPERM) {
		return refused
	}
	if err := set(flags); err != nil {
		return err
	}
	m.locked(refused)
	return nil
}

// tooMany marks the error of a call that adds a mount.
func tooMany(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w: %w", err, ErrTooMany)
	}
	return err
}

// wrap puts what was tried in front of an error. It returns nil for nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
