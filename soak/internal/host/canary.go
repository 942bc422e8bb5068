package host

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Canaries are directories that must not change: not by the driver, whatever is
// made to lead there, and not the soak. They have files in them, some read-only,
// some further down, with random contents.
type Canaries struct {
	directories []string
	// things are all directories and files, a directory before what is in it.
	things []canary
}

// canary is one directory or file as it has to be.
type canary struct {
	path  string
	state canaryState
	// Of a directory, names are what is in it, sorted.
	names []string
	// Of a file.
	content []byte
}

// canaryState is what stat(2) says. The time of change would be enough to tell
// that something has happened; the others tell what it was.
type canaryState struct {
	dev, ino         uint64
	mode             uint32
	uid, gid         uint32
	links            uint64
	size             int64
	modified, change unix.Timespec
}

// canaryFiles are the files of each directory.
var canaryFiles = []struct {
	name string
	mode os.FileMode
	size int
}{
	{"a", 0o644, 300},
	{"read-only", 0o444, 100},
	{"private", 0o600, 8000},
	{"below/program", 0o755, 1},
	{"below/read-only", 0o400, 0},
}

// MakeCanaries makes n directories with files in dir, which is made if it is
// not there. Nothing else may be in it: Check looks at all of it.
func MakeCanaries(dir string, n int) (*Canaries, error) {
	if n < 1 {
		return nil, fmt.Errorf("make canaries: %d directories, there has to be at least one", n)
	}
	c := &Canaries{}
	for i := range n {
		d := filepath.Join(dir, "canary-"+strconv.Itoa(i))
		if err := makeCanary(d); err != nil {
			return nil, fmt.Errorf("make a canary: %w", err)
		}
		c.directories = append(c.directories, d)
	}
	// As they are now they have to stay.
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		thing := canary{path: path}
		if thing.state, thing.names, thing.content, err = look(path); err != nil {
			return err
		}
		c.things = append(c.things, thing)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the new canaries: %w", err)
	}
	return c, nil
}

// makeCanary makes one of the directories, as it would be if it were older.
func makeCanary(dir string) error {
	old := time.Now().Add(-24 * time.Hour)
	below := filepath.Join(dir, "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		return err
	}
	for _, f := range canaryFiles {
		content := make([]byte, f.size)
		_, _ = rand.Read(content) // never fails
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		// Not with WriteFile: the umask would have a say.
		if err := errors.Join(os.Chmod(path, f.mode), os.Chtimes(path, old, old)); err != nil {
			return err
		}
	}
	return errors.Join(os.Chtimes(below, old, old), os.Chtimes(dir, old, old))
}

// Directory is one of the directories, to be the target of a symlink or the
// source of a bind mount. They count from 0, and begin again after the last.
func (c *Canaries) Directory(i int) string {
	return c.directories[i%len(c.directories)]
}

// Check compares all directories and files with what they were, contents too,
// and returns an error that says the first thing that has changed: missing,
// added, replaced, mode, owner, times, links, content. It reads the files, and
// that changes nothing that it looks at.
func (c *Canaries) Check() error {
	for _, thing := range c.things {
		state, names, content, err := look(thing.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("canary %s is missing", thing.path)
		case err != nil:
			return fmt.Errorf("look at canary %s: %w", thing.path, err)
		}
		if what := thing.difference(state, names, content); what != "" {
			return fmt.Errorf("canary %s: %s", thing.path, what)
		}
	}
	return nil
}

// difference says what has changed; it is empty if nothing has.
func (c canary) difference(state canaryState, names []string, content []byte) string {
	was := c.state
	switch {
	case state.dev != was.dev, state.ino != was.ino, (state.mode^was.mode)&unix.S_IFMT != 0:
		return "it was replaced by something else, or something is mounted on it"
	case state.mode != was.mode:
		return fmt.Sprintf("its mode is %#o and was %#o", state.mode&^unix.S_IFMT, was.mode&^unix.S_IFMT)
	case state.uid != was.uid, state.gid != was.gid:
		return fmt.Sprintf("its owner is %d:%d and was %d:%d", state.uid, state.gid, was.uid, was.gid)
	}
	for _, name := range names {
		if _, found := slices.BinarySearch(c.names, name); !found {
			return fmt.Sprintf("%q was added", name)
		}
	}
	for _, name := range c.names {
		if _, found := slices.BinarySearch(names, name); !found {
			return fmt.Sprintf("%q is missing", name)
		}
	}
	switch {
	case !bytes.Equal(content, c.content):
		return fmt.Sprintf("its content is another: %d bytes, of what were %d", len(content), len(c.content))
	case state.links != was.links:
		return fmt.Sprintf("it has %d links and had %d", state.links, was.links)
	case state.modified != was.modified:
		return "it was written to, or its time of modification was set"
	case state != was:
		return "something about it was changed, and changed back"
	}
	return ""
}

// look reads what there is to know of a directory or file.
func look(path string) (state canaryState, names []string, content []byte, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return state, nil, nil, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	state = canaryState{
		dev: st.Dev, ino: st.Ino, mode: st.Mode, uid: st.Uid, gid: st.Gid, links: uint64(st.Nlink),
		modified: st.Mtim, change: st.Ctim,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		// A directory's size is the file system's business.
		entries, err := os.ReadDir(path)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return state, names, nil, err
	case unix.S_IFREG:
		state.size = st.Size
		content, err = readRegular(path, st.Size)
		return state, nil, content, err
	}
	return state, nil, nil, nil
}

// readRegular reads a file of about the given size. What was a file a moment ago
// may be a symlink or a FIFO by now: the one is not followed, the other does not
// block.
func readRegular(path string, size int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// One byte more shows that it has grown, without reading however much it is.
	return io.ReadAll(io.LimitReader(file, size+1))
}
