package mount

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// tablePath is the mount table of this process.
const tablePath = "/proc/self/mountinfo"

// readTable reads the whole mount table, older mounts before those on top of them.
func readTable() ([]*mountinfo.Info, error) {
	content, err := readConsistently(tablePath)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	table, err := parseTable(content)
	return table, wrap(err, "parse %s", tablePath)
}

// readsConsistently reports whether reading the table once is enough; see readConsistently.
var readsConsistently = sync.OnceValue(func() bool {
	_, _, err := mountRoot("/", 0)
	return !errors.Is(err, errNoMountRoot)
})

// readConsistently reads a file of /proc. Before Linux 5.8, which also taught statx(2) about mount
// points, a mount that goes while the table is being read can hide another one that stays; there
// the same content has to be read twice in a row.
func readConsistently(name string) (string, error) {
	content, err := readFile(name)
	if err != nil {
		return "", err
	}
	if readsConsistently() {
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

// lastSize is the size of the last file that readFile read. With 20,000 mounts that is 8 MB, and a
// buffer that grows step by step to 8 MB takes five times as much.
var lastSize atomic.Int64

// readFile reads a file that does not tell its size. It does so past Go's poller: to that one the mount table is
// always ready, which wakes another thread for each time that it is opened.
func readFile(name string) (string, error) {
	fd, err := kernel.Openat(unix.AT_FDCWD, name, unix.O_RDONLY)
	if err != nil {
		return "", wrap(err, "open %s", name)
	}
	defer unix.Close(fd)
	const atLeast = 4096
	content := make([]byte, 0, atLeast+lastSize.Load()+lastSize.Load()/8)
	for {
		var n int
		err := kernel.IgnoreEINTR(func() (err error) {
			n, err = unix.Read(fd, content[len(content):cap(content)])
			return err
		})
		switch {
		case err != nil:
			return "", wrap(err, "read %s", name)
		case n == 0:
			lastSize.Store(int64(len(content)))
			// Nothing writes to content any more.
			return unsafe.String(unsafe.SliceData(content), len(content)), nil
		}
		content = content[:len(content)+n]
		if len(content) == cap(content) {
			content = slices.Grow(content, len(content))
		}
	}
}

// directory is a directory as the mount table sees it: its path without symbolic links, the mount
// that it is on, and its path inside the file system.
type directory struct {
	path  string
	mount *mountinfo.Info
	root  string
}

// resolve returns the path of a directory without symbolic links, and the ID of the mount it is on.
func resolve(dir string) (string, uint64, error) {
	fd, err := kernel.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return "", 0, fmt.Errorf("open directory %s: %w", dir, err)
	}
	defer unix.Close(fd)
	return resolveOpen(fd, dir)
}

// resolveOpen is resolve for an open directory. The kernel tells the path of an open directory, so
// path and ID belong together, also when something covers the path.
func resolveOpen(fd int, name string) (string, uint64, error) {
	resolved, err := os.Readlink(handlePath(fd))
	if err != nil {
		return "", 0, fmt.Errorf("resolve %s: %w", name, err)
	}
	id, err := ID(fd)
	return resolved, id, wrap(err, "mount of %s", name)
}

// lookUp finds a directory in the mount table, which it reads.
func lookUp(dir string) (table []*mountinfo.Info, here directory, err error) {
	resolved, id, err := resolve(dir)
	if err == nil {
		table, err = readTable()
	}
	if err == nil {
		here, err = locate(table, resolved, id)
	}
	return table, here, err
}

// locate finds a resolved directory in the mount table.
func locate(table []*mountinfo.Info, dir string, id uint64) (directory, error) {
	for _, info := range table {
		if uint64(info.ID) != id {
			continue
		}
		rest, ok := within(dir, info.Mountpoint)
		if !ok {
			return directory{}, fmt.Errorf("%s is not below the mount point %s of its mount %d", dir, info.Mountpoint, id)
		}
		return directory{path: dir, mount: info, root: path.Join(cutDeleted(info.Root), rest)}, nil
	}
	return directory{}, fmt.Errorf("the mount %d that %s is on is not in the mount table", id, dir)
}

// sameFileSystem compares the device numbers of the mount table, which on btrfs differ from those
// of stat(2).
func (d directory) sameFileSystem(info *mountinfo.Info) bool {
	return d.mount.Major == info.Major && d.mount.Minor == info.Minor
}

// within returns the path of name relative to dir, "" when they are the same, and whether it is in
// there at all. Both are clean absolute paths.
func within(name, dir string) (rest string, ok bool) {
	if name == dir {
		return "", true
	}
	if dir != "/" {
		dir += "/"
	}
	return strings.CutPrefix(name, dir)
}

// cutDeleted removes the mark that the mount table appends to the root of a mount whose directory
// has been removed. No path has two slashes in a row.
func cutDeleted(root string) string { return strings.TrimSuffix(root, "//deleted") }

// parseTable parses a mount table, see proc_pid_mountinfo(5).
//
// Pods choose names in the table: a subPath mount shows its directory. The parser of mount-utils
// splits lines at every Unicode space, but the kernel escapes only blanks, tabs and newlines: a
// carriage return in a name could forge a line. The parser of moby refuses the whole table when one
// line has 64 KiB, which a deep directory reaches.
func parseTable(content string) ([]*mountinfo.Info, error) {
	var table []*mountinfo.Info
	for line := range strings.Lines(content) {
		info, err := parseLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %.200q: %w", line, err)
		}
		table = append(table, info)
	}
	return table, nil
}

// parseLine parses a line such as
//
//	36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw
//
// where any number of optional fields comes before the dash.
func parseLine(line string) (*mountinfo.Info, error) {
	const optional = 6
	fields := strings.Split(line, " ")
	if len(fields) <= optional {
		return nil, errors.New("has too few fields")
	}
	dash := slices.Index(fields[optional:], "-") + optional
	if dash < optional || len(fields) < dash+4 {
		return nil, errors.New("has no file system")
	}
	major, minor, _ := strings.Cut(fields[2], ":")
	var p lineParser
	info := &mountinfo.Info{
		ID:         p.number(fields[0]),
		Parent:     p.number(fields[1]),
		Major:      p.number(major),
		Minor:      p.number(minor),
		Root:       p.unescape(fields[3]),
		Mountpoint: p.unescape(fields[4]),
		Options:    fields[5],
		Optional:   strings.Join(fields[optional:dash], " "),
		// What file systems write here is theirs, and nothing hangs on it.
		FSType:     unescapeLoosely(fields[dash+1]),
		Source:     unescapeLoosely(fields[dash+2]),
		VFSOptions: fields[dash+3],
	}
	return info, p.err
}

// lineParser keeps the last error.
type lineParser struct{ err error }

func (p *lineParser) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.err = err
	}
	return n
}

// unescape undoes what the kernel does to some characters: a backslash and three octal digits stand
// for one byte.
func (p *lineParser) unescape(s string) string {
	plain, escaped, found := strings.Cut(s, `\`)
	if !found {
		return s
	}
	name := []byte(plain)
	for part := range strings.SplitSeq(escaped, `\`) {
		digits := part[:min(3, len(part))]
		b, err := strconv.ParseUint(digits, 8, 8)
		if err != nil || len(digits) < 3 {
			p.err = fmt.Errorf("\\%s is no byte", digits)
			return ""
		}
		name = append(append(name, byte(b)), part[3:]...)
	}
	return string(name)
}

// unescapeLoosely keeps what does not follow the kernel's own rule as it is.
func unescapeLoosely(s string) string {
	var p lineParser
	if unescaped := p.unescape(s); p.err == nil {
		return unescaped
	}
	return s
}
