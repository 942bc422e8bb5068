package unpack

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Options say where an archive is unpacked, and how.
type Options struct {
	// Dir is made if it does not exist; what it is in has to exist. It may be a symbolic link.
	Dir string
	// Overwrite replaces files and symbolic links. Directories are never replaced.
	Overwrite bool
	// Symlinks makes the symbolic links of the archive, wherever they point to. Without it they are
	// left out and counted.
	Symlinks bool
	// Save, if not nil, keeps what a later call needs to go on, in the same directory, where nothing but these calls
	// writes. It is called at the beginning, now and then while the archive is read, and after an error; never twice at
	// once. After it nothing is left of a file that is not complete, and directories grant no more than they will in the
	// end, except that their owner may go on.
	Save func(Checkpoint) error
	// From is what an earlier call has saved. The archive then begins at From.Next.
	From Checkpoint
	// Progress, if not nil, is called now and then with the bytes of the archive read so far.
	Progress func(bytes int64)
}

// Report says what was unpacked.
type Report struct {
	Files, Directories, Links int
	// Symlinks were made; SkippedSymlinks were left out.
	Symlinks, SkippedSymlinks int
	// Bytes is how much of the archive was read.
	Bytes int64
	// Next is where the first entry begins that was not unpacked, in the archive as this call has read it.
	Next int64
	// Untimed is how many files and directories could not get their times.
	Untimed int
	// LeftOut is how many entries were left out; see [LeftOutError].
	LeftOut int
}

// Errors that Unpack wraps.
var (
	// ErrExists: a name of the archive exists, and may not be replaced.
	ErrExists = errors.New("it exists already")
	// ErrUnsafe: an entry could change something outside of the directory, or is of a kind that no
	// volume's archive has.
	ErrUnsafe = errors.New("no archive of a volume has this")
)

// Unpack reads an archive from r and unpacks it. It stops at the first error, and what it unpacked
// by then stays; but it goes on behind an entry that the destination refuses, and returns a
// [*LeftOutError] at the end. It looks at ctx between reads; a read that blocks is the caller's to end.
func Unpack(ctx context.Context, r io.Reader, o Options) (Report, error) {
	return unpackOn(ctx, host, r, o)
}

func unpackOn(ctx context.Context, on system, r io.Reader, o Options) (Report, error) {
	if err := os.Mkdir(o.Dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return Report{}, err
	}
	top, err := on.open(o.Dir)
	if err != nil {
		return Report{}, err
	}
	u := &unpacker{
		Options: o,
		stream:  stream{ctx: ctx, r: bufio.NewReaderSize(r, bufferSize), progress: o.Progress},
		tree:    &tree{rules: on.rules, levels: []level{{dir: top}}, grants: !on.noModes && os.Geteuid() != 0 && (o.Overwrite || o.Save != nil)},
		buf:     make([]byte, bufferSize),
	}
	u.stream.reading = &u.mu
	defer top.close()
	defer u.tree.close()
	u.mu.Lock()
	defer u.mu.Unlock()
	if o.Save != nil {
		err = u.savingAll()
	} else {
		err = u.all()
	}
	u.report.Bytes = u.stream.bytes
	u.report.Untimed += u.tree.untimed
	u.report.LeftOut = u.without.Count
	if err != nil {
		return u.report, fmt.Errorf("unpack into %q: %w", o.Dir, err)
	}
	return u.report, nil
}

// unpacker is one call of Unpack.
type unpacker struct {
	Options
	// mu guards the rest while the archive is read.
	mu sync.Mutex
	// partial is the name of a file that is not complete, if there is a Save.
	partial string
	stream  stream
	tree    *tree
	report  Report
	without leftOut
	buf     []byte
}

func (u *unpacker) all() error {
	for {
		e, err := u.stream.next()
		switch {
		case errors.Is(err, io.EOF):
			if err := u.tree.finish(); err != nil {
				return err
			}
			return u.without.err()
		case err != nil:
			return err
		}
		if err := u.entry(e); err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		u.report.Next = u.stream.bytes + u.stream.left + u.stream.padding
		if err := u.stream.skip(); err != nil {
			return err
		}
	}
}

// entry unpacks an entry, or leaves it out.
func (u *unpacker) entry(e *entry) error {
	elements, err := split(e.Name)
	switch {
	case err != nil:
		return err
	case e.Typeflag == tar.TypeSymlink && !u.Symlinks:
		u.report.SkippedSymlinks++
		return nil
	case u.without.has(elements):
		u.without.Count++
		return nil
	}
	place, err := u.tree.check(elements)
	if err == nil {
		err = u.put(elements, e)
		place = min(len(u.tree.levels), len(elements)) - 1 // that of the name that was met last
	}
	if err != nil && u.refused(err) {
		return u.without.add(e.Name, elements[:place+1], err)
	}
	return err
}

// put unpacks an entry whose name this system can have.
func (u *unpacker) put(elements []string, e *entry) error {
	last := len(elements) - 1
	if e.Typeflag == tar.TypeDir {
		err := u.tree.directory(elements, e.Header)
		if err == nil {
			u.report.Directories++
		}
		return err
	}
	if err := u.tree.enter(elements[:last]); err != nil {
		return err
	}
	var made func(name string, e *entry) error
	var count *int
	switch e.Typeflag {
	case tar.TypeReg:
		made, count = u.file, &u.report.Files
	case tar.TypeLink:
		made, count = u.link, &u.report.Links
	case tar.TypeSymlink:
		made, count = u.symlink, &u.report.Symlinks
	default:
		return fmt.Errorf("it has type %q: %w", e.Typeflag, ErrUnsafe)
	}
	if err := made(elements[last], e); err != nil {
		return err
	}
	*count++
	u.tree.note(u.tree.here(), elements[last])
	return nil
}
