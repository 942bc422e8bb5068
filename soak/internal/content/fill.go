package content

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// pieceSize is how much of a file is in memory at a time, in bytes.
const pieceSize = 64 << 10

// Filled says how much of its content a volume has: all of it, or what had room.
type Filled struct {
	// Marker says that the marker is in place.
	Marker bool
	// Entries is how many files, directories and so on there are beside the
	// marker, Bytes how many bytes are in them.
	Entries int
	Bytes   int64
}

// Fill writes a volume's content into its directory, the marker first. On a
// full disk the error is ENOSPC or EDQUOT, also when there are no inodes left;
// what was written until then is complete and noted in Filled. A volume that
// has its content already is an error (EEXIST).
func Fill(dir string, s Spec) (Filled, error) {
	var done Filled
	if s.Content.Links && !filepath.IsAbs(s.Outside) {
		return done, fmt.Errorf("fill %s: Spec.Outside is %q and has to be an absolute path", dir, s.Outside)
	}
	w, err := newWalker(dir)
	if err != nil {
		return done, err
	}
	defer w.close()

	err = w.create(MarkerName, fileMode, func(f *os.File) error {
		_, err := f.WriteString(s.marker())
		return err
	})
	if err != nil {
		return done, fmt.Errorf("write the marker in %s: %w", dir, err)
	}
	done.Marker = true
	for e := range s.entries() {
		if err := w.enter(e.in); err != nil {
			return done, fmt.Errorf("fill %s: %w", dir, err)
		}
		if err := w.make(e); err != nil {
			return done, fmt.Errorf("fill %s: make %s: %w", dir, e, err)
		}
		done.Entries++
		if e.kind == file {
			done.Bytes += e.size
		}
	}
	return done, nil
}

// make makes an entry of the present directory.
func (w *walker) make(e entry) error {
	switch e.kind {
	case directory:
		return w.mkdir(e.name, e.mode)
	case symlink:
		return retried(func() error { return unix.Symlinkat(e.to, w.at, e.name) })
	case hardlink:
		return retried(func() error { return unix.Linkat(w.at, e.to, w.at, e.name, 0) })
	case fifo:
		return retried(func() error { return unix.Mknodat(w.at, e.name, unix.S_IFIFO|e.mode, 0) })
	case socket:
		return retried(func() error { return unix.Mknodat(w.at, e.name, unix.S_IFSOCK|e.mode, 0) })
	case sparse:
		return w.create(e.name, e.mode, func(f *os.File) error {
			if err := f.Truncate(e.size); err != nil {
				return err
			}
			_, err := io.Copy(io.NewOffsetWriter(f, e.size/2), e.island())
			return err
		})
	default:
		return w.create(e.name, e.mode, func(f *os.File) error {
			_, err := io.CopyBuffer(onlyWriter{f}, e.bytes(), make([]byte, min(pieceSize, e.size+1)))
			return err
		})
	}
}

// islandSize is how much data a sparse file has, in its middle.
const islandSize = 100

// island are the bytes in the middle of a sparse file.
func (e entry) island() io.Reader {
	e.size = islandSize
	return e.bytes()
}

// onlyWriter hides that a file can read from others by itself, for which it
// would use a buffer of its own.
type onlyWriter struct{ io.Writer }

// intruder is the file that cannot be made in a read-only volume.
const intruder = "soak-intruder"

// CheckReadOnly returns nil if nothing can be made in a directory because it is
// read-only (EROFS), and else says what came of it.
func CheckReadOnly(dir string) error {
	w, err := newWalker(dir)
	if err != nil {
		return err
	}
	defer w.close()
	err = w.create(intruder, fileMode, func(*os.File) error { return nil })
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("writing in %s succeeded instead of failing with EROFS", dir),
			unix.Unlinkat(w.at, intruder, 0))
	case !errors.Is(err, unix.EROFS):
		return fmt.Errorf("writing in %s did not fail with EROFS: %w", dir, err)
	}
	return nil
}
