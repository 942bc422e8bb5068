package localdisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
)

// Locations know where the pools of a process are in their file systems, and so whose a mount is, also while a pool's
// disk is away. The path inside a file system does not tell that alone: other programs have directories of the name
// volumes, and backups of a pool have its names.
type Locations struct {
	paths []string

	mu sync.Mutex
	// of has the locations of each path at which a pool was opened: a disk that comes back may have another number, while
	// mounts of the former one are still there.
	of map[string][]location
}

// location is a pool's directory in its file system. files is the number of the file system's device as stat(2) has it
// for files in there.
type location struct {
	mount.Location
	files uint64
}

// NewLocations returns the locations of pools at paths. As long as one of them has not been opened, any mount may be of
// it: then the path inside the file system has to do.
func NewLocations(paths ...string) *Locations {
	l := &Locations{of: map[string][]location{}}
	for _, path := range paths {
		l.paths = append(l.paths, filepath.Clean(path))
	}
	return l
}

// learn notes where a pool is. Of the former locations of its path it keeps those that something is mounted from: the
// number of a device that is gone may be another one's.
func (l *Locations) learn(path string, at location) error {
	table, err := attach.Table()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.DeleteFunc(l.of[path], func(o location) bool {
		return o == at || !slices.ContainsFunc(table, func(m attach.Mount) bool { return m.Device == o.Device })
	})
	l.of[path] = append(known, at)
	return nil
}

// all returns the known locations, and whether that is all there are.
func (l *Locations) all() (known map[string][]location, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, complete = make(map[string][]location, len(l.of)), true
	for path, at := range l.of {
		known[path] = slices.Clone(at)
	}
	for _, path := range l.paths {
		complete = complete && len(known[path]) > 0
	}
	return known, complete
}

// NameOf returns whose mount a line of the mount table is: the name of the volume whose directory, disk or disk's node
// it shows. It asks no file system of a pool whose disk may be away.
func (l *Locations) NameOf(m attach.Mount) (name string, ok bool) {
	root := strings.TrimSuffix(m.Root, removedMark)
	known, complete := l.all()
	for _, locations := range known {
		for _, at := range locations {
			if name, ok := nameBelow(root, at.Root); ok && at.Device == m.Device {
				return name, true
			}
		}
	}
	if device, ok := deviceOf(m); ok {
		if name, ok := l.ofDevice(device); ok {
			return name, true
		}
	}
	if complete {
		return "", false
	}
	return nameIn(root)
}

// deviceOf returns the name of the loop device whose file system, or whose node, a mount shows.
func deviceOf(m attach.Mount) (name string, ok bool) {
	if name, ok := nodeOf(m); ok {
		return name, true
	}
	link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(m.Device), unix.Minor(m.Device)))
	name = filepath.Base(link)
	return name, err == nil && strings.HasPrefix(name, "loop")
}

// ofDevice returns the name of the volume whose image a loop device has.
func (l *Locations) ofDevice(device string) (name string, ok bool) {
	content, err := readBacking(device)
	if err != nil {
		return "", false
	}
	path := backingFile(content)
	dir, file := filepath.Split(path)
	if name, ok = nameIn(filepath.Clean(dir)); !ok || file != imageName {
		return "", false
	}
	return name, l.hasImage(device, name, path)
}

// hasImage reports whether a loop device has the image of a volume of a pool, from the path that the kernel shows of its
// file. That may be one of a mount namespace that is gone, and begin anywhere in the path; any other path is that of a
// copy, or of the disk at another place: then the number of the file decides.
func (l *Locations) hasImage(device, name, path string) bool {
	known, complete := l.all()
	suffix := filepath.Join("/", volumesName, name, imageName)
	if !strings.HasSuffix(path, suffix) {
		return false
	}
	for pool, locations := range known {
		if path == filepath.Join(pool, suffix) || slices.ContainsFunc(locations, func(at location) bool {
			return strings.HasSuffix(filepath.Join(at.Root, suffix), path)
		}) {
			return true
		}
	}
	if !complete {
		return true
	}
	has, err := openLoop(device, os.O_RDONLY)
	if err != nil {
		return !errors.Is(err, volume.ErrNotFound)
	}
	defer has.Close()
	for pool, locations := range known {
		for _, at := range locations {
			if at.files != has.Device {
				continue
			}
			// The disk is there: the device has a file on it.
			image, err := kernel.Stat(filepath.Join(pool, suffix))
			if err != nil && !errors.Is(err, unix.ENOENT) || err == nil && image.Ino == has.Inode {
				return true
			}
		}
	}
	return false
}

// nameBelow returns the name of a volume in a path that leads into its directory in a pool.
func nameBelow(path, pool string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(path, filepath.Join(pool, volumesName)+"/")
	name, _, _ = strings.Cut(rest, "/")
	return name, ok && checkName(name) == nil
}

// nameIn returns the name of a volume in a path that leads into its directory in any pool.
func nameIn(path string) (name string, ok bool) {
	elements := strings.Split(path, "/")
	for i := len(elements) - 2; i > 0; i-- {
		if elements[i] == volumesName && checkName(elements[i+1]) == nil {
			return elements[i+1], true
		}
	}
	return "", false
}
