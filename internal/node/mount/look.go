package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// Showing compares what is mounted at a target with the directory that should be.
type Showing int

const (
	// NotMounted: nothing is mounted there, or the target does not exist.
	NotMounted Showing = iota
	// ShowsSource: the directory that should be is mounted.
	ShowsSource
	// ShowsRemoved: a directory is mounted that has been removed since.
	ShowsRemoved
	// ShowsOther: something else is mounted.
	ShowsOther
	// ShowsBeneath: something else is mounted on top of the directory that should be.
	ShowsBeneath
	// ShowsNamesake: a directory of the same name is mounted, in one of the same name, but not there: as when the
	// directory above both was replaced, with its disk or without.
	ShowsNamesake
)

// Shows reports whether the topmost mount at target shows the directory source, as it is at that path
// now. It asks no file system over a network and no FUSE server. Of one that refuses to answer, as a disk that is
// dead, and of what lies beneath another mount, it tells what the mount table does, which it then reads.
func (m *Mounter) Shows(target, source string) (Showing, error) {
	showing, err := m.compare(target, source)
	if err == nil && showing != ShowsOther && showing != ShowsRemoved {
		return showing, nil
	}
	layers, tableErr := m.Layers(target, source)
	switch {
	case tableErr != nil:
		return ShowsOther, errors.Join(err, tableErr)
	case len(layers) == 0:
		return showing, err
	}
	top := layers[len(layers)-1].Showing
	switch {
	case top == ShowsOther && slices.ContainsFunc(layers, func(l Layer) bool { return l.Showing == ShowsSource }):
		return ShowsBeneath, nil
	case err == nil && (showing == ShowsRemoved || top == ShowsSource):
		return showing, nil // they differ, however they are called
	}
	return top, nil
}

// compare is Shows for file systems that answer.
func (m *Mounter) compare(target, source string) (Showing, error) {
	there, mounted, err := m.look(target, unix.AT_STATX_DONT_SYNC)
	switch {
	case !mounted && (err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)):
		return NotMounted, nil
	case err != nil:
		return ShowsOther, err
	case there.links == 0:
		return ShowsRemoved, nil
	}
	should, err := lstat(source)
	switch {
	case err == nil && there.dev == should.dev && there.ino == should.ino:
		return ShowsSource, nil
	case errors.Is(err, fs.ErrNotExist):
		return ShowsOther, nil
	}
	return ShowsOther, err
}

// look returns what is at path and whether something is mounted there, which it tells also with an
// error. One system call answers both, unless the kernel is old.
func (m *Mounter) look(path string, flags int) (there inode, mounted bool, err error) {
	// A trailing slash would make the kernel follow a symbolic link after all.
	path = filepath.Clean(path)
	if !m.noMountRoot.Load() {
		there, mounted, err = mountRoot(path, flags)
		if !errors.Is(err, errNoMountRoot) {
			return there, mounted, err
		}
		m.noMountRoot.Store(true)
	}
	mounted, err = hasOwnMount(path)
	if err != nil || !mounted {
		return inode{}, false, err
	}
	there, err = lstat(path)
	return there, true, err
}

// errNoMountRoot says that statx(2) does not tell mount points here.
var errNoMountRoot = errors.New("statx does not report mount roots")

// IsMountPoint reports whether something is mounted at path. A symbolic link is no mount point. It
// does not read the mount table. The error wraps fs.ErrNotExist when there is nothing at path, and
// the kernel's (ESTALE, EIO, ENOTCONN) when the mounted file system does not answer.
func (m *Mounter) IsMountPoint(path string) (bool, error) {
	_, mounted, err := m.look(path, 0)
	return mounted, err
}

// inode is what is at a path: its identity, and how many names it has.
type inode struct{ dev, ino, links uint64 }

// mountRoot asks statx(2) what is at path and whether it is a mount point, which statx knows since
// Linux 5.8.
func mountRoot(path string, flags int) (at inode, mounted bool, err error) {
	var st unix.Statx_t
	err = kernel.IgnoreEINTR(func() error {
		return unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|flags, unix.STATX_BASIC_STATS, &st)
	})
	switch {
	case unsupported(err), err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return inode{}, false, errNoMountRoot
	case err != nil:
		return inode{}, false, wrap(err, "statx %s", path)
	}
	at = inode{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, links: uint64(st.Nlink)}
	return at, st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// Point is what is at a path.
type Point struct {
	// Mounted: something is mounted there.
	Mounted bool
	// Mode is its type and its permissions, as of stat(2).
	Mode uint32
	// Device is the number of the file system's device. Node is that of the device whose node it is.
	Device, Node uint64
	// Removed: it has no name any more.
	Removed bool
}

// LookCached tells what is at a path, from what the kernel has in memory: it asks no file system, which may be a
// server that does not answer. What it tells of the file may be old; whether something is mounted, and on which
// device, is not. The error wraps fs.ErrNotExist when there is nothing at path.
//
// Of a file system that refuses to answer, such as an XFS that has shut down after errors of its disk, it tells what
// the mount table does.
//
// On kernels before 5.8 it reads the mount table, and before 4.11 it asks the file system.
func LookCached(path string) (Point, error) {
	path = filepath.Clean(path)
	p, err := lookAt(unix.AT_FDCWD, path, lookFlags)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		if there, ok := refusing(path); ok {
			return there, nil
		}
	}
	return p, wrap(err, "look at %s", path)
}

// refusing tells what is mounted at a path whose file system refuses to answer, and whether the mount table has it.
// A file that is mounted is not told.
func refusing(path string) (Point, bool) {
	fd, err := openDirectory(path) // it reads nothing
	if err == nil {
		unix.Close(fd)
	}
	if errors.Is(err, unix.ENOTDIR) {
		return Point{}, false
	}
	table, err := readTable()
	if err != nil {
		return Point{}, false
	}
	mounts, err := stack(table, path)
	if err != nil || len(mounts) == 0 {
		return Point{}, false
	}
	top := mounts[len(mounts)-1]
	return Point{Mounted: true, Mode: unix.S_IFDIR, Device: unix.Mkdev(uint32(top.Major), uint32(top.Minor))}, true
}

// LookOpen is LookCached for an open file.
func LookOpen(fd int) (Point, error) { return lookAt(fd, "", lookFlags|unix.AT_EMPTY_PATH) }

const lookFlags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC

// lookAt looks at a path, or at an open file if the path is empty.
func lookAt(fd int, path string, flags int) (p Point, err error) {
	var st unix.Statx_t
	err = kernel.IgnoreEINTR(func() error { return unix.Statx(fd, path, flags, unix.STATX_BASIC_STATS, &st) })
	switch {
	case unsupported(err):
		return lookBefore(fd, path, flags)
	case err != nil:
		return p, err
	}
	p = Point{
		Mounted: st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, Mode: uint32(st.Mode), Removed: st.Nlink == 0,
		Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Node: unix.Mkdev(st.Rdev_major, st.Rdev_minor),
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		p.Mounted, err = inTable(fd, path)
	}
	return p, err
}

// lookBefore does what lookAt does where there is no statx(2).
func lookBefore(fd int, path string, flags int) (p Point, err error) {
	var st unix.Stat_t
	err = kernel.IgnoreEINTR(func() error { return unix.Fstatat(fd, path, &st, flags&^unix.AT_STATX_DONT_SYNC) })
	if err != nil {
		return p, err
	}
	p = Point{Mode: st.Mode, Removed: st.Nlink == 0, Device: st.Dev, Node: st.Rdev}
	p.Mounted, err = inTable(fd, path)
	return p, err
}

// inTable reports whether the mount table has a mount at a path, or at the path of an open file if that is empty.
func inTable(fd int, path string) (bool, error) {
	if path == "" {
		var err error
		if path, err = os.Readlink(handlePath(fd)); err != nil {
			return false, err
		}
	}
	table, err := readTable()
	return slices.ContainsFunc(table, func(m *mountinfo.Info) bool { return m.Mountpoint == path }), err
}

// hasOwnMount finds mount points on older kernels: a mount point is on another mount than the
// directory above it.
func hasOwnMount(path string) (bool, error) {
	if path == "/" {
		return true, nil
	}
	own, err := mountIDOf(path, unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	parent, err := mountIDOf(filepath.Dir(path), 0)
	return err == nil && own != parent, err
}

func mountIDOf(path string, flags int) (uint64, error) {
	fd, err := kernel.Openat(unix.AT_FDCWD, path, unix.O_PATH|flags)
	if err != nil {
		return 0, wrap(err, "open %s", path)
	}
	defer unix.Close(fd)
	// Unlike openat this asks the file system: one that does not answer is an error here too.
	if _, err := kernel.Fstat(fd); err != nil {
		return 0, wrap(err, "stat %s", path)
	}
	id, err := ID(fd)
	return id, wrap(err, "mount of %s", path)
}

func lstat(path string) (inode, error) {
	st, err := kernel.Lstatat(unix.AT_FDCWD, path)
	if err != nil {
		return inode{}, fmt.Errorf("stat %s: %w", shown(path), err)
	}
	return inode{dev: st.Dev, ino: st.Ino, links: uint64(st.Nlink)}, nil
}

// ID returns the number that the mount of the open file fd has in the mount table. Once a mount is
// gone, another one may get its ID.
func ID(fd int) (uint64, error) {
	var st unix.Statx_t
	err := kernel.IgnoreEINTR(func() error {
		// DONT_SYNC does not ask a file system that hangs: the kernel knows the mount.
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st)
	})
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id, nil
	}
	// Before Linux 5.8 statx does not know it, before 4.11 there is no statx.
	return procID(fd)
}

// procID does what ID does, by way of /proc.
func procID(fd int) (uint64, error) {
	path := "/proc/self/fdinfo/" + strconv.Itoa(fd)
	info, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no mnt_id", path)
}

// openDirectory returns a handle that stands for the directory at path, or for the root of the
// topmost mount there. It needs no permission on the directory itself. While it is open, the mount
// it is on cannot be unmounted.
func openDirectory(path string) (int, error) {
	fd, err := open(path, unix.O_DIRECTORY)
	if err != nil {
		return -1, fmt.Errorf("open directory %s: %w", shown(path), err)
	}
	return fd, nil
}

// open opens a path that leads to no symbolic link, to stand for what is there.
func open(path string, flags int) (int, error) {
	if !filepath.IsAbs(path) {
		return -1, errors.New("the path is not absolute")
	}
	// Clean removes a trailing slash, as in look.
	return kernel.Openat(unix.AT_FDCWD, filepath.Clean(path), unix.O_PATH|unix.O_NOFOLLOW|flags)
}

// handlePath is a path that leads to an open file.
func handlePath(fd int) string { return handles + strconv.Itoa(fd) }

// handles has a path to each open file of this process, also when something covers its own path.
const handles = "/proc/self/fd/"

// shown is a path as errors name it: a handle's number tells people nothing.
type shown string

// String replaces a handle by the path of the open file.
func (p shown) String() string {
	below, ok := strings.CutPrefix(string(p), handles)
	if !ok {
		return string(p)
	}
	number, rest, _ := strings.Cut(below, "/")
	open, err := os.Readlink(handles + number)
	if err != nil {
		return string(p)
	}
	return filepath.Join(open, rest)
}
