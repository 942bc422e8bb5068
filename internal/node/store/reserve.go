package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// reserveAhead is how many bytes behind the end of the file are reserved.
//
// bbolt never overwrites a page that is in use: a commit takes free pages, and gives back the old
// ones for the commit after the next. So updates and deletions take fresh pages for a few commits,
// and then use the same ones again. The largest group commits change some thousand pages of 4 KiB;
// bbolt itself makes the file longer in steps of 16 MiB.
const reserveAhead = 16 << 20

// reserve keeps blocks of the file system ready for the pages that bbolt will write. bbolt makes
// its file longer by truncate, which takes no blocks, so on a full file system the write fails.
type reserve struct {
	file        *os.File
	until       int64 // the offset up to which all blocks are there
	err         error // why there is not as much as there should be
	unsupported bool  // there never will be
}

func newReserve(file *os.File) reserve {
	r := reserve{file: file}
	if copiesOnWrite(file) {
		r.unsupported, r.err = true, errCopies
	}
	return r
}

// ahead reserves what is missing: at the start, when the file has grown, and again when there was
// no room before. It is cheap when nothing is missing.
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
	switch {
	case want <= r.until:
		return
	case st.Blocks*512 >= want:
		// The reserve of the last run. XFS would want as much again for a moment, and refuse on a
		// full file system.
		r.until, r.err = want, nil
		return
	case errors.Is(r.err, unix.ENOSPC) && !r.room(want-r.until):
		// It cannot succeed. On a full file system ext4 would commit its journal several times to
		// see whether that frees anything.
		return
	}
	r.err = kernel.Fallocate(int(r.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, r.until, want-r.until)
	if r.err == nil {
		r.until = want
	}
	r.unsupported = errors.Is(r.err, unix.EOPNOTSUPP) || errors.Is(r.err, unix.ENOSYS)
}

// room reports whether the file system has that many bytes free.
func (r *reserve) room(bytes int64) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(int(r.file.Fd()), &fs)
	return err == nil && fs.Bavail*uint64(fs.Bsize) >= uint64(bytes)
}

// ReserveError returns nil when disk blocks are reserved for the next commits, and else why not:
// once the file system is full, a commit may fail with [volume.ErrNoSpace]. Where room was short,
// the next commits try again. A reserve works where the file is overwritten in place: on ext4, XFS
// and the like, and on btrfs if this package created the file.
func (s *Store) ReserveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db.reserve.err == nil {
		return nil
	}
	return fmt.Errorf("reserve disk space for %s: %w; with a full disk, unpublish and eviction may fail",
		s.db.path, s.db.reserve.err)
}
