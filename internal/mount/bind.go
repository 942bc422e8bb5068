package mount

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// openDirectory returns a handle that stands for the directory at path, or for
// the root of the topmost mount there. It needs no permission on the directory
// itself. While it is open, the mount it is on cannot be unmounted.
func openDirectory(path string) (int, error) {
	if !filepath.IsAbs(path) {
		return -1, fmt.Errorf("open %q: the path is not absolute", path)
	}
	var fd int
	err := kernel.IgnoreEINTR(func() (err error) {
		// Clean takes a trailing slash off, which would make the kernel follow
		// a symbolic link in spite of O_NOFOLLOW.
		fd, err = unix.Open(filepath.Clean(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open directory %s: %w", shown(path), err)
	}
	return fd, nil
}

// bindAtOnce binds directory from on directory onto, with its flags from the
// first moment.
func (m *Mounter) bindAtOnce(from, onto int, flags change) error {
	tree, err := kernel.OpenTree(from)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	// Until it is attached, closing the handle takes the new mount away again.
	defer unix.Close(tree)
	// A copy of a shared mount is a peer of it: every later mount below the one
	// would be looked up in the other. Making it private leaves that group; it
	// then shares with its surroundings what the target's mount shares.
	err = m.setFlags(flags, func(c change) error { return setAttributes(tree, c, unix.MS_PRIVATE) })
	if err != nil {
		return err
	}
	return wrap(kernel.MoveMount(tree, onto), "move_mount")
}

// setAttributes changes the flags of the mount that fd is the root of, and its
// propagation unless that is 0.
func setAttributes(fd int, flags change, propagation uint64) error {
	err := kernel.MountSetattr(fd, &unix.MountAttr{
		Attr_set: flags.set,
		// The kernel insists on clearing the whole field to set an atime mode,
		// which clear does, and accepts no bit of the rest in both.
		Attr_clr:    flags.clear,
		Propagation: propagation,
	})
	return wrap(err, "mount_setattr")
}

// unsupported tells whether err may mean that the kernel, or a system call
// filter that is older than the call, does not know the call. Such filters say
// EPERM; a real EPERM is found again by the older way.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// bindInSteps does what bindAtOnce does with mount(2) alone: bind first, then
// set the flags, and unmount again when that fails. target is the path of onto.
func (m *Mounter) bindInSteps(from, onto int, target string, flags change) error {
	// mount(2) takes only paths. These name the open directories themselves,
	// whatever has happened to their paths.
	if err := kernel.Mount(handlePath(from), handlePath(onto), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if m.wished(flags) == (change{}) {
		return nil
	}
	// onto is below the new mount now; the path leads to its root.
	err := m.setFlags(flags, func(c change) error { return remountPath(target, c) })
	if err == nil {
		return nil
	}
	if undo := kernel.Unmount(filepath.Clean(target)); undo != nil {
		return fmt.Errorf("%w; the mount is still there: unmount %s: %w", err, target, undo)
	}
	return err
}

func remountPath(target string, flags change) error {
	fd, err := openDirectory(target)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return remount(fd, flags)
}

// remount changes the flags of the mount that fd is the root of with mount(2),
// which replaces all of them: the others have to be read first and repeated.
func remount(fd int, flags change) error {
	var st unix.Statfs_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
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

// handlePath is a path that leads to an open file.
func handlePath(fd int) string { return handles + strconv.Itoa(fd) }
