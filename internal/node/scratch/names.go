package scratch

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/beneath"
)

// buffer is what a batch of names is read into: some hundred names, or some sixty of the longest.
type buffer [16 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// next returns the next names in an open directory, without . and .., and none at the end. They do
// not refer to the buffer.
func (b *buffer) next(fd int) ([]string, error) {
	for {
		size, err := beneath.Getdents(fd, b[:])
		if err != nil || size <= 0 {
			return nil, err
		}
		var batch []string
		for r := range beneath.Records(b[:size]) {
			batch = append(batch, string(r.Name))
		}
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

// isDirectory reports whether name is a directory, not a link to one. A name that has just been
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
// and reports whether there may be more.
func (l *listing) read(fd, size int) (more bool, err error) {
	limit := max(minListing, min(size, maxListing-l.kept))
	used := 0
	for more = true; more && limit-used >= roomForNames; {
		if len(l.buf)-used < roomForNames {
			l.buf = slices.Grow(l.buf, max(minListing, len(l.buf)))
			l.buf = l.buf[:cap(l.buf)]
		}
		got, err := beneath.Getdents(fd, l.buf[used:min(limit, len(l.buf))])
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
	for r := range beneath.Records(l.buf[:used]) {
		l.entries = append(l.entries, entry{
			inode: r.Inode,
			start: uint32(r.Start),
			end:   uint32(r.Start + len(r.Name)),
			kind:  r.Type,
		})
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.inode, b.inode) })
}
