package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/katbox/katbox/internal/lib/sparse"
)

// holeSize is the unit in which zeros become holes, in bytes. It is the block size of nearly all
// file systems.
const holeSize = 4096

var hole [holeSize]byte

// errTaken: what was written has lost its name before it was complete. On a file system without locks, a second call that
// goes on from the same checkpoint takes it.
var errTaken = errors.New("another process writes the same copy")

// file unpacks a regular file.
func (u *unpacker) file(name string, e *entry) error {
	if err := u.mayReplace(name); err != nil {
		return err
	}
	dir := u.tree.here().dir
	var f *os.File
	partial, err := u.makePartial(name, func(partial string) (err error) {
		// Of the mode, the umask takes something, and the bits above 0777 stay away.
		f, err = dir.create(partial, u.tree.mode(e.Mode))
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	mine, err := dir.look(partial)
	if err == nil {
		err = u.contents(f, e)
	}
	if tooLarge := errors.Is(err, syscall.EFBIG); tooLarge || err != nil && u.Save != nil {
		err = errors.Join(err, f.Close(), dir.remove(partial))
		if tooLarge {
			return misfit{err}
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; what there is of the file is in %q", err, partial)
	}
	// While the file is open, no other has its number.
	if now, err := dir.look(partial); err != nil || !now.same(mine) {
		return ending{errors.Join(errTaken, err)}
	}
	// Some network file systems say only now that there was no room.
	if err := f.Close(); err != nil {
		return ending{err}
	}
	// Some systems set the time once more when a file is closed.
	if err := u.timed(dir.setTime(partial, e.ModTime)); err != nil {
		return err
	}
	return u.rename(partial, name)
}

// contents writes what the archive has of a file, and leaves holes elsewhere.
func (u *unpacker) contents(f *os.File, e *entry) error {
	if e.sparse() {
		allowHoles(f)
	}
	for _, x := range e.extents {
		if err := u.extent(f, x); err != nil {
			return err
		}
	}
	if err := f.Truncate(e.Size); err != nil {
		return ending{err}
	}
	return nil
}

func (u *unpacker) extent(f *os.File, x sparse.Extent) error {
	for done := int64(0); done < x.Length; {
		b := u.buf[:min(int64(len(u.buf)), x.Length-done)]
		if err := u.stream.full(b); err != nil {
			return err
		}
		if err := writeData(f, b, x.Offset+done); err != nil {
			return ending{err}
		}
		done += int64(len(b))
	}
	return nil
}

// writeData writes b except for its zeros, in units of holeSize.
func writeData(f io.WriterAt, b []byte, at int64) error {
	for len(b) > 0 {
		zero := run(b, true)
		b, at = b[zero:], at+int64(zero)
		data := run(b, false)
		if _, err := f.WriteAt(b[:data], at); err != nil {
			return err
		}
		b, at = b[data:], at+int64(data)
	}
	return nil
}

// run returns how much of the beginning of b is zeros, or is not, in units of holeSize and what
// remains at the end.
func run(b []byte, zero bool) int {
	n := 0
	for n < len(b) {
		unit := b[n:min(n+holeSize, len(b))]
		if bytes.Equal(unit, hole[:len(unit)]) != zero {
			break
		}
		n += len(unit)
	}
	return n
}
