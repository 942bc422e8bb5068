package scratch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth is how many directories Erase holds open above each other. What
	// lies deeper is moved up, so that no tree is too deep.
	maxDepth = 64
	// maxPasses bounds how often a directory is swept that does not become
	// empty, because somebody still writes into it or because the file system
	// skips names while others are being removed.
	maxPasses = 16
)

// Erase deletes the entry name of the trash with all that is in it. An entry
// that is gone already is no error.
//
// What cannot be deleted does not keep the rest from being deleted; the error
// tells of the first few. It wraps [ErrMountInside] when something is mounted
// inside. ctx is looked at before each file; when it is done, the rest stays
// for the next time. What stays may by then be several entries of the trash.
func (d *Dir) Erase(ctx context.Context, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("erase %q: not the name of an entry of the trash", name)
	}
	e := &eraser{dir: d, buf: newBuffer()}
	for next := name; next != ""; {
		e.remove(ctx, d.trashFD(), next)
		next = e.takeOverflow()
		if err := ctx.Err(); err != nil {
			e.faults.add(err)
			break
		}
	}
	if err := e.faults.err(); err != nil {
		return fmt.Errorf("erase %s: %w", path.Join(d.root, trashName, name), err)
	}
	return nil
}

// eraser is one call of Erase.
type eraser struct {
	dir    *Dir
	buf    []byte
	faults faults
	// path leads from the trash to what is being removed.
	path []string
	// overflow is the directory that what lies too deep was moved into, if any:
	// the first such directory itself, because with a full disk there is no
	// room to make one. overflowName is its name in the trash.
	overflow     int
	overflowName string
}

// remove erases name in the directory at, and tells whether it is gone.
func (e *eraser) remove(ctx context.Context, at int, name string) bool {
	e.path = append(e.path, name)
	defer func() { e.path = e.path[:len(e.path)-1] }()

	// Most are files: try that first instead of asking what it is.
	err := unix.Unlinkat(at, name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return true
	case !errors.Is(err, unix.EISDIR):
		e.fail("unlink", err)
		return false
	case len(e.path) > maxDepth:
		return e.moveUp(at, name)
	}
	return e.removeTree(ctx, at, name)
}

func (e *eraser) removeTree(ctx context.Context, at int, name string) bool {
	fd, err := e.dir.openChild(at, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return true
	case errors.Is(err, unix.EXDEV):
		e.fail("open", fmt.Errorf("%w: %w", ErrMountInside, err))
		return false
	case err != nil:
		e.fail("open", err)
		return false
	}
	defer unix.Close(fd)
	reader := names{fd: fd, buf: e.buf}
	before := e.faults.count
	for range maxPasses {
		e.sweep(ctx, &reader)
		if e.faults.count > before || ctx.Err() != nil {
			return false
		}
		err = removeDirectory(at, name)
		if err == nil {
			return true
		}
		if !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
		if err := reader.rewind(); err != nil {
			e.fail("rewind", err)
			return false
		}
	}
	e.fail("rmdir", err)
	return false
}

// sweep removes what it finds in a directory in one pass.
func (e *eraser) sweep(ctx context.Context, reader *names) {
	for {
		batch, err := reader.next()
		if err != nil {
			e.fail("read", err)
			return
		}
		if len(batch) == 0 {
			return
		}
		for _, name := range batch {
			if ctx.Err() != nil {
				return
			}
			e.remove(ctx, reader.fd, name)
		}
	}
}

// moveUp moves a directory that lies too deep up to where it does not, to be
// erased once the rest is.
func (e *eraser) moveUp(at int, name string) bool {
	if e.overflowName != "" {
		if err := e.dir.rename(at, name, e.overflow, freshName()); err != nil {
			e.fail("move up", err)
			return false
		}
		return true
	}
	fresh, err := e.dir.moveToTrash(at, name)
	if err != nil {
		e.fail("move up", err)
		return false
	}
	fd, err := e.dir.openChild(e.dir.trashFD(), fresh)
	if err != nil {
		e.fail("open what was moved up", err)
		return false
	}
	e.overflow, e.overflowName = fd, fresh
	return true
}

// takeOverflow returns the name of the overflow in the trash, "" if there is
// none, and forgets it.
func (e *eraser) takeOverflow() string {
	name := e.overflowName
	if name != "" {
		unix.Close(e.overflow)
		e.overflowName = ""
	}
	return name
}

// fail notes what could not be done to the current path. Removing or moving a
// mount point fails with EBUSY. The path is quoted, for a pod chose the names in
// it.
func (e *eraser) fail(what string, err error) {
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: %w", ErrMountInside, err)
	}
	e.faults.add(fmt.Errorf("%s %q: %w", what, path.Join(e.path...), err))
}
