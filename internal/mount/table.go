package mount

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/internal/kernel"
)

// tablePath is the mount table of this process.
const tablePath = "/proc/self/mountinfo"

// readTable reads the whole mount table, older mounts before those on top of
// them.
func readTable() ([]*mountinfo.Info, error) {
	content, err := readConsistently(tablePath)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	table, err := parseTable(content)
	return table, wrap(err, "parse %s", tablePath)
}

// readConsistently reads a file of /proc. Before Linux 5.8 a mount that goes
// while the table is being read can hide another one that stays; there the same
// content has to be read twice in a row. The kernel that fixed it is also the
// one that taught statx(2) about mount points.
func readConsistently(name string) (string, error) {
	content, err := readFile(name)
	if err != nil {
		return "", err
	}
	if _, _, err := mountRoot("/"); !errors.Is(err, errNoMountRoot) {
		return content, nil
	}
	const tries = 10
	for range tries {
		again, err := readFile(name)
		if err != nil {
			return "", err
		}
		if content == again {
			return content, nil
		}
		content = again
	}
	return "", fmt.Errorf("%s changed each of %d times that it was read", name, tries)
}

// lastSize is how long the file was that readFile read last: with 20,000 mounts it has
// 8 MB, and a buffer that grows to that takes five times as much.
var lastSize atomic.Int64

// readFile reads a file that does not tell its size.
func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var content strings.Builder
	content.Grow(int(lastSize.Load() + lastSize.Load()/8))
	if _, err := io.Copy(&content, f); err != nil {
		return "", err
	}
	lastSize.Store(int64(content.Len()))
	return content.String(), nil
}

// place is a directory as the mount table sees it.
type place struct {
	// mount is the mount that the directory is on.
	mount *mountinfo.Info
	// root is the directory's path inside its file system.
	root string
}

// resolve returns the path of a directory without symbolic links, and the ID of
// the mount it is on.
func resolve(dir string) (string, uint64, error) {
	var fd int
	err := kernel.IgnoreEINTR(func() (err error) {
		fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return "", 0, fmt.Errorf("open directory %s: %w", dir, err)
	}
	defer unix.Close(fd)
	return resolveOpen(fd, dir)
}

// resolveOpen is resolve for an open directory. The kernel tells the path of what
// is open, so path and ID belong together, whatever is mounted over it since.
func resolveOpen(fd int, name string) (string, uint64, error) {
	resolved, err := os.Readlink(handlePath(fd))
	if err != nil {
		return "", 0, fmt.Errorf("resolve %s: %w", name, err)
	}
	id, err := ID(fd)
	return resolved, id, wrap(err, "mount of %s", name)
}

// locate finds a resolved directory in the mount table.
func locate(table []*mountinfo.Info, dir string, id uint64) (place, error) {
	for _, info := range table {
		if uint64(info.ID) != id {
			continue
		}
		rest, ok := within(dir, info.Mountpoint)
		if !ok {
			return place{}, fmt.Errorf("%s is not below the mount point %s of its mount %d", dir, info.Mountpoint, id)
		}
		root := cutDeleted(info.Root)
		return place{mount: info, root: path.Join(root, rest)}, nil
	}
	return place{}, fmt.Errorf("the mount %d that %s is on is not in the mount table", id, dir)
}

// sameFileSystem compares by device number as the mount table gives it, which
// on btrfs is not the one that stat(2) gives.
func (p place) sameFileSystem(info *mountinfo.Info) bool {
	return p.mount.Major == info.Major && p.mount.Minor == info.Minor
}

// within returns the path of name relative to dir, "" when they are the same,
// and whether it is in there at all. Both are clean absolute paths.
func within(name, dir string) (rest string, ok bool) {
	if name == dir {
		return "", true
	}
	if dir != "/" {
		dir += "/"
	}
	return strings.CutPrefix(name, dir)
}

// cutDeleted takes off what the mount table appends to the root of a mount
// whose directory has been removed. No path has two slashes in a row.
func cutDeleted(root string) string { return strings.TrimSuffix(root, "//deleted") }

// List returns all mounts of this process' mount namespace. It reads the whole
// mount table.
func (m *Mounter) List() ([]mountutils.MountPoint, error) {
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	points := make([]mountutils.MountPoint, 0, len(table))
	for _, info := range table {
		points = append(points, mountutils.MountPoint{
			Device: info.Source,
			Path:   info.Mountpoint,
			Type:   info.FSType,
			Opts:   strings.Split(info.Options+","+info.VFSOptions, ","),
		})
	}
	return points, nil
}

// GetMountRefs returns the other mount points of the directory at pathname,
// which are none when there is no such directory. It reads the whole mount
// table.
func (m *Mounter) GetMountRefs(pathname string) ([]string, error) {
	absolute, err := filepath.Abs(pathname)
	if err != nil {
		return nil, fmt.Errorf("mount references of %s: %w", pathname, err)
	}
	dir, id, err := resolve(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mount references of %s: %w", pathname, err)
	}
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	here, err := locate(table, dir, id)
	if err != nil {
		return nil, fmt.Errorf("mount references of %s: %w", pathname, err)
	}
	var refs []string
	for _, info := range table {
		if info != here.mount && here.sameFileSystem(info) && info.Root == here.root {
			refs = append(refs, info.Mountpoint)
		}
	}
	return refs, nil
}
