package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
)

// reserveAhead is how many bytes behind the end of the file are reserved.
//
// bbolt never overwrites a page that is in use. A commit needs free pages for
// every page it changes and for the list of free pages, and gives back the old
// ones for the commit after the next. So updating and deleting records over
// and over takes at most a few commits' worth of fresh pages, and then goes on
// with the same ones. The largest group commits change some thousand pages of
// 4 KiB at once; bbolt itself makes the file longer in steps of 16 MiB.
const reserveAhead = 16 << 20

// reserve keeps blocks of the file system ready for the pages that bbolt is
// going to write. bbolt makes its file longer by truncate, which takes no
// blocks, so that with the file system full it is the write that fails. With a
// reserve it is not: the blocks are the file's already, beyond its end.
type reserve struct {
	file *os.File
	// until is the offset up to which all blocks are there.
	until int64
	// err is why there is not as much as there should be.
	err error
	// unsupported is set once it is known that there never will be.
	unsupported bool
	// fallocate is the function of that name, but for tests.
	fallocate func(fd int, mode uint32, off, length int64) error
}

func newReserve(file *os.File) reserve {
	r := reserve{file: file, fallocate: fallocate}
	if copiesOnWrite(file) {
		r.unsupported, r.err = true, errCopies
	}
	return r
}

func fallocate(fd int, mode uint32, off, length int64) error {
	return crashpoint.Around("store/reserve", func() error { return unix.Fallocate(fd, mode, off, length) })
}

// ahead reserves what is missing: at the start, when the file has grown, and
// again when there was no room before. It is cheap when nothing is missing.
func (r *reserve) ahead() {
	var st unix.Stat_t
	if r.unsupported {
		return
	}
	if err := unix.Fstat(int(r.file.Fd()), &st); err != nil {
		r.err = err
		return
	}
	want := st.Size + reserveAhead
	if want <= r.until {
		return
	}
	if st.Blocks*512 >= want {
		// The reserve of the last run. XFS would want as much again for a moment,
		// and refuse when the file system is full.
		r.until, r.err = want, nil
		return
	}
	if errors.Is(r.err, unix.ENOSPC) && !r.room(want-r.until) {
		// Not tried again until it can succeed: on a full file system ext4
		// commits its journal, several times, to see whether that frees anything.
		return
	}
	for {
		r.err = r.fallocate(int(r.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, r.until, want-r.until)
		if !errors.Is(r.err, unix.EINTR) {
			break
		}
	}
	if r.err == nil {
		r.until = want
	}
	r.unsupported = errors.Is(r.err, unix.EOPNOTSUPP) || errors.Is(r.err, unix.ENOSYS)
}

// room tells whether the file system has that many bytes free.
func (r *reserve) room(bytes int64) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(r.file.Fd()), &fs); err != nil {
		return false
	}
	return fs.Bavail*uint64(fs.Bsize) >= uint64(bytes)
}

// ReserveError returns nil when disk blocks are reserved for the next commits,
// so that they succeed with the file system full, or else why they are not.
// Everything works without a reserve until the file system is full; then a
// commit may fail with [volume.ErrNoSpace]. When space was short, the next
// commits try again.
//
// A reserve holds what it promises where the file is overwritten in place: on
// file systems such as ext4 and XFS, and on btrfs if it was so created, as this
// package does.
func (s *Store) ReserveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserve.err == nil {
		return nil
	}
	return fmt.Errorf("reserve disk space for %s: %w; with a full disk, unpublish and eviction may fail",
		s.db.path, s.reserve.err)
}
