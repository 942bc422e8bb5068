package scratch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// buffer is what a batch of names is read into: some hundred names, or some sixty of the longest.
type buffer [16 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// next returns the next names in an open directory, without . and .., and none at the end. They do
// not refer to the buffer.
func (b *buffer) next(fd int) ([]string, error) {
	for {
		size, err := getdents(fd, b[:])
		if err != nil || size <= 0 {
			return nil, err
		}
		_, _, batch := unix.ParseDirent(b[:size], -1, nil)
		// A batch that holds only . and .. need not be the last.
		if len(batch) > 0 {
			return batch, nil
		}
	}
}

// eachName yields the names in an open directory. An error ends them.
func eachName(fd int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buf := buffers.Get().(*buffer)
		defer buffers.Put(buf)
		for {
			batch, err := buf.next(fd)
			if err != nil {
				yield("", err)
			}
			for _, name := range batch {
				if !yield(name, nil) {
					return
				}
			}
			if len(batch) == 0 {
				return
			}
		}
	}
}

// isDirectory tells whether name is a directory, not a link to one. A name that has just been
// removed is none.
func isDirectory(at int, name string) bool {
	st, err := kernel.Lstatat(at, name)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

const (
	// The first listing of a directory is small, because most directories are. The next ones grow
	// to maxListing bytes, some hundred thousand names: ext4 returns them in the order of their
	// hashes, and to erase in the order of inodes changes the same block less often.
	minListing = 64 << 10
	maxListing = 4 << 20
	// roomForNames is the smallest read: more than the longest name.
	roomForNames = 4 << 10

	// Offsets in struct linux_dirent64.
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// listing is a part of a directory, in the order of inodes. The next read reuses its memory.
type listing struct {
	buf     []byte
	entries []entry
	// kept is the size of the names that the directories above still need. Listings below are
	// smaller by as much, so that all together stay small.
	kept int
}

// entry is a name in a directory.
type entry struct {
	inode uint64
	// start and end are where the name is in the buffer.
	start, end uint32
	kind       uint8
}

func (l *listing) name(e entry) string { return string(l.buf[e.start:e.end]) }

// read reads up to size bytes of names from where the directory fd was read to, without . and ..,
// and tells whether there may be more.
func (l *listing) read(fd, size int) (more bool, err error) {
	limit := max(minListing, min(size, maxListing-l.kept))
	used := 0
	for more = true; more && limit-used >= roomForNames; {
		if len(l.buf)-used < roomForNames {
			l.buf = slices.Grow(l.buf, max(minListing, len(l.buf)))
			l.buf = l.buf[:cap(l.buf)]
		}
		got, err := getdents(fd, l.buf[used:min(limit, len(l.buf))])
		if err != nil {
			return false, err
		}
		more = got > 0
		used += got
	}
	l.parse(used)
	return more, nil
}

// parse makes entries of the first bytes of the buffer.
func (l *listing) parse(used int) {
	l.entries = l.entries[:0]
	for start := 0; start < used; {
		record := l.buf[start:used]
		record = record[:binary.NativeEndian.Uint16(record[direntLength:])]
		length := bytes.IndexByte(record[direntName:], 0)
		if name := record[direntName : direntName+length]; string(name) != "." && string(name) != ".." {
			l.entries = append(l.entries, entry{
				inode: binary.NativeEndian.Uint64(record),
				start: uint32(start + direntName),
				end:   uint32(start + direntName + length),
				kind:  record[direntType],
			})
		}
		start += len(record)
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.inode, b.inode) })
}

// getdents reads names from an open directory; the size is 0 at the end.
func getdents(fd int, buf []byte) (size int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		size, err = unix.Getdents(fd, buf)
		return err
	})
	if errors.Is(err, unix.ENOENT) {
		// The directory has been removed since it was opened.
		return 0, nil
	}
	return size, os.NewSyscallError("getdents", err)
}

// rewind goes back to the first name of an open directory.
func rewind(fd int) error {
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	return os.NewSyscallError("lseek", err)
}
