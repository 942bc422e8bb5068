package unpack

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
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
	// Owner gives files and directories the owner and group that the archive says. Only root may.
	Owner bool
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
// by then stays. It looks at ctx between reads; a read that blocks is the caller's to end.
func Unpack(ctx context.Context, r io.Reader, o Options) (Report, error) {
	if err := os.Mkdir(o.Dir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return Report{}, err
	}
	top, err := os.OpenFile(o.Dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return Report{}, err
	}
	u := &unpacker{
		Options: o,
		stream:  stream{ctx: ctx, r: bufio.NewReaderSize(r, bufferSize), progress: o.Progress},
		tree:    &tree{owner: o.Owner, levels: []level{{fd: int(top.Fd())}}},
		buf:     make([]byte, bufferSize),
	}
	defer top.Close()
	defer u.tree.close()
	err = u.all()
	u.report.Bytes = u.stream.bytes
	if err != nil {
		return u.report, fmt.Errorf("unpack into %q: %w", o.Dir, err)
	}
	return u.report, nil
}

// unpacker is one call of Unpack.
type unpacker struct {
	Options
	stream stream
	tree   *tree
	report Report
	buf    []byte
}

func (u *unpacker) all() error {
	for {
		e, err := u.stream.next()
		switch {
		case errors.Is(err, io.EOF):
			return u.tree.finish()
		case err != nil:
			return err
		}
		if err := u.entry(e); err != nil {
			return fmt.Errorf("%q: %w", e.Name, err)
		}
		if err := u.stream.skip(); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(e *entry) error {
	elements, err := split(e.Name)
	if err != nil {
		return err
	}
	if e.Typeflag == tar.TypeDir {
		u.report.Directories++
		return u.tree.directory(elements, e.Header)
	}
	dir, err := u.tree.enter(elements[:len(elements)-1])
	if err != nil {
		return err
	}
	name := elements[len(elements)-1]
	switch e.Typeflag {
	case tar.TypeReg:
		u.report.Files++
		return u.file(dir, name, e)
	case tar.TypeLink:
		u.report.Links++
		return u.link(dir, name, e.Linkname)
	case tar.TypeSymlink:
		if !u.Symlinks {
			u.report.SkippedSymlinks++
			return nil
		}
		u.report.Symlinks++
		return u.symlink(dir, name, e.Header)
	default:
		return fmt.Errorf("it has type %q: %w", e.Typeflag, ErrUnsafe)
	}
}
