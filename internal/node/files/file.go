package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/lib/tail"
)

// File is an open regular file. Its methods may be called from several goroutines.
type File struct {
	file  handle
	entry Entry
	// dropping: Close drops all of it.
	dropping atomic.Bool
}

// Open opens the regular file at a path for reading. All else is looked at, never opened: the error
// wraps [ErrNotRegular], [ErrIsDirectory], [ErrSymlink] or [ErrCrossesMount].
func (t *Tree) Open(p paths.Path) (*File, error) {
	fd, e, err := t.look(p)
	if err != nil {
		return nil, err
	}
	defer closeHandle(fd)
	return openLooked(fd, e)
}

// openLooked opens the file that the handle fd stands for. It opens that very inode, so it does not
// matter what has the name by now.
func openLooked(fd int, e Entry) (*File, error) {
	if err := readable(e); err != nil {
		return nil, at(e.Path, err)
	}
	path := "/proc/self/fd/" + strconv.Itoa(fd)
	// O_NONBLOCK does not wait for a lease on the file.
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	opened, err := kernel.Openat(unix.AT_FDCWD, path, flags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		opened, err = kernel.Openat(unix.AT_FDCWD, path, flags)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("open %s: %s does not exist; is /proc mounted", e.Path.Quote(), path)
	}
	if err != nil {
		return nil, at(e.Path, fmt.Errorf("open: %w", err))
	}
	return &File{file: handle{fd: opened}, entry: e}, nil
}

// Close releases the file, as soon as reads that run have ended. Reads that begin later return
// fs.ErrClosed. After DropBehind or DropOnClose, Close drops the rest from the page cache.
func (f *File) Close() error {
	if f.dropping.Load() {
		f.drop(0, 0)
	}
	return f.file.close()
}

// Entry is what the file was when it was opened.
func (f *File) Entry() Entry { return f.entry }

// Size is the file's size in bytes when it was opened.
func (f *File) Size() int64 { return f.entry.Size }

// ETag is the HTTP entity tag of the contents, in its double quotes: inode, size and time of the
// last change.
func (f *File) ETag() string {
	return fmt.Sprintf(`"%x-%x-%x"`, f.entry.Inode, f.entry.Size, f.entry.ModTime.UnixNano())
}

// ReadAt is io.ReaderAt on the bytes that the file had when it was opened: of a file that has grown
// since it reads the beginning, and of one that has shrunk the error is io.ErrUnexpectedEOF. Callers
// read at most 256 KiB at a time and call their [Pace] before.
func (f *File) ReadAt(b []byte, offset int64) (int, error) {
	size := f.Size()
	if offset >= size {
		return 0, io.EOF
	}
	cut := int64(len(b)) > size-offset
	if cut {
		b = b[:size-offset]
	}
	n, err := f.file.readAt(b, offset)
	switch {
	case err != nil:
		err = at(f.entry.Path, err)
	case n < len(b):
		err = fmt.Errorf("%s: it was truncated while it was read: %w", f.entry.Path.Quote(), io.ErrUnexpectedEOF)
	case cut:
		err = io.EOF
	}
	return n, err
}

// Changed reports whether the size or the time of the last change differ from when the file was
// opened.
func (f *File) Changed() (bool, error) {
	var st unix.Stat_t
	err := f.file.use(func(fd int) (err error) { st, err = kernel.Fstat(fd); return err })
	changed := st.Size != f.entry.Size || !timeOf(&st).Equal(f.entry.ModTime)
	return err == nil && changed, err
}

// Data returns the next range at or behind offset that may hold other bytes than zeros; the rest is
// holes. The error is io.EOF when no more data follows.
func (f *File) Data(offset int64) (start, end int64, err error) {
	size := f.Size()
	if offset >= size {
		return size, size, io.EOF
	}
	err = f.file.use(func(fd int) error {
		if start, err = unix.Seek(fd, offset, unix.SEEK_DATA); err != nil {
			return err
		}
		end, err = unix.Seek(fd, start, unix.SEEK_HOLE)
		return err
	})
	switch {
	case errors.Is(err, unix.ENXIO), err == nil && start >= size:
		return size, size, io.EOF
	case err != nil:
		return 0, 0, at(f.entry.Path, os.NewSyscallError("lseek", err))
	}
	return start, min(end, size), nil
}

// folio is more than the page cache keeps in one piece.
const folio = 4 << 20

// DropBehind drops what was read of the range from the page cache, so that reading does not push the
// page cache of pods out of memory. The kernel drops whole pieces alone: a piece that the range ends
// in goes with the next range, or with Close.
func (f *File) DropBehind(from, to int64) {
	f.DropOnClose()
	from = max(0, from-folio)
	f.drop(from, to-from)
}

// DropOnClose makes Close drop all of the file from the page cache.
func (f *File) DropOnClose() { f.dropping.Store(true) }

// drop drops a range, or all from an offset on if length is 0. It is a hint, so an error is none.
func (f *File) drop(offset, length int64) {
	_ = f.file.use(func(fd int) error { return unix.Fadvise(fd, offset, length, unix.FADV_DONTNEED) })
}

// Tail is [tail.Offset] of the file.
func (f *File) Tail(ctx context.Context, lines int, atMost int64) (offset int64, err error) {
	return tail.Offset(ctx, f, f.Size(), lines, atMost)
}
