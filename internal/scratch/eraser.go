package scratch

import (
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
)

const (
	// maxDepth is how many directories Erase holds open above each other. What
	// lies deeper is moved up, so that no tree is too deep.
	maxDepth = 64
	// maxPasses bounds how often a directory is swept that does not become
	// empty, because somebody still writes into it or because the file system
	// skips names while others are being removed.
	maxPasses = 16
	// paceEvery is how many removals are tried between two calls of a Pace.
	paceEvery = 256
)

// eraser is one call of Erase.
type eraser struct {
	dir *Dir
	// entry is the name in the trash, empty for what is not there.
	entry  string
	pace   Pace
	faults faults
	// stopped is why nothing more is to be removed.
	stopped error
	// tried counts removals, those that failed too; removed counts what is gone
	// and pace has not been told of.
	tried, removed int
	listing        listing
	// branch are the directories that are being emptied, each in the one before.
	branch []opened
	// moved are names in the trash of what lay too deep. The last of them is
	// open as overflow, and takes what is moved up next; overflow is -1 when it
	// is not open.
	moved    []string
	overflow int
}

// opened is a directory that is being emptied.
type opened struct {
	fd   int
	name string
	// grew says that something was moved into it, perhaps behind the place that
	// has been read to.
	grew bool
}

// turn is called before each removal, and before each move of what lies too deep.
// It tells whether to go on.
func (e *eraser) turn(ctx context.Context) bool {
	if e.stopped == nil {
		e.stopped = ctx.Err()
	}
	if e.stopped == nil && e.tried%paceEvery == 0 {
		removed := e.removed
		e.removed = 0
		e.stopped = e.pace(ctx, removed)
	}
	e.tried++
	return e.stopped == nil
}

// remove erases name in the directory at, whatever it is. Most often it is a
// volume, and many a volume is empty: that one is gone with one call.
func (e *eraser) remove(ctx context.Context, at int, name string) {
	if !e.turn(ctx) {
		return
	}
	if err := rmdir(at, name); err == nil {
		e.removed++
		return
	}
	if !e.unlink(at, name) {
		e.removeTree(ctx, at, name)
	}
}

// unlink removes name unless it is a directory, and tells whether it was none.
func (e *eraser) unlink(at int, name string) bool {
	err := removeFile(at, name)
	if refused(err) && e.release(at, name) {
		err = removeFile(at, name)
	}
	switch {
	case err == nil:
		e.removed++
	case errors.Is(err, unix.EISDIR):
		return false
	case errors.Is(err, unix.EPERM) && e.dir.mountedOn(at, name):
		// What is below has a flag, and that is told first.
		e.fail("unlink", name, fmt.Errorf("%w: %w", ErrMountInside, err))
	case !errors.Is(err, unix.ENOENT):
		e.fail("unlink", name, err)
	}
	return true
}

func removeFile(at int, name string) error {
	return crashpoint.Around("scratch/unlink", func() error { return unix.Unlinkat(at, name, 0) })
}

// removeTree removes the directory name with all that is in it.
func (e *eraser) removeTree(ctx context.Context, at int, name string) {
	if len(e.branch) >= maxDepth {
		if !e.turn(ctx) {
			return
		}
		err := e.moveUp(at, name)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return
		case !errors.Is(err, errNowhere):
			e.fail("move up", name, err)
			return
		}
	}
	fd, err := e.dir.openChild(at, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return
	case errors.Is(err, unix.ENOTDIR):
		// Somebody put something else in its place.
		e.unlink(at, name)
		return
	case errors.Is(err, unix.EXDEV):
		e.fail("open", name, fmt.Errorf("%w: %w", ErrMountInside, err))
		return
	case err != nil:
		e.fail("open", name, err)
		return
	}
	e.branch = append(e.branch, opened{fd: fd, name: name})
	what, err := e.empty(ctx, at)
	e.branch = e.branch[:len(e.branch)-1]
	unix.Close(fd)
	if err != nil {
		e.fail(what, name, err)
	}
}

// empty empties the lowest directory of the branch, which is in the directory at,
// and removes it. The error says why it is still there, unless faults or stopped
// already do; what is the call that failed.
func (e *eraser) empty(ctx context.Context, at int) (what string, err error) {
	here := len(e.branch) - 1
	fd, name := e.branch[here].fd, e.branch[here].name
	before := e.faults.count
	for pass := 0; pass < maxPasses; pass++ {
		if what, err := e.sweep(ctx, fd); err != nil {
			return what, err
		}
		if e.stopped != nil {
			return "", nil
		}
		grew := e.branch[here].grew
		e.branch[here].grew = false
		switch {
		case grew:
			// What was moved here is progress, not somebody who writes.
			pass = -1
		case e.faults.count > before:
			return "", nil
		}
		if !e.turn(ctx) {
			return "", nil
		}
		err = e.rmdir(at, name)
		if !errors.Is(err, unix.ENOTEMPTY) {
			return "rmdir", err
		}
		if err := rewind(fd); err != nil {
			return "rewind", err
		}
	}
	return "rmdir", err
}

func (e *eraser) rmdir(at int, name string) error {
	err := e.dir.removeDirectory(at, name)
	if refused(err) && e.release(at, name) {
		err = e.dir.removeDirectory(at, name)
	}
	if err == nil {
		e.removed++
	}
	return err
}

// sweep removes what it finds in a directory in one pass.
func (e *eraser) sweep(ctx context.Context, fd int) (what string, err error) {
	// An erasure that is soon interrupted is not to read a huge directory each
	// time.
	more := true
	for size := minListing; more; size = min(4*size, maxListing) {
		if more, err = e.listing.read(fd, size); err != nil {
			return "read", err
		}
		// The listing is read anew below: the directories' names are kept.
		var directories []string
		for _, entry := range e.listing.entries {
			name := e.listing.name(entry)
			// Where the kind is not known, most are files: that is tried first.
			if entry.kind != unix.DT_DIR {
				if !e.turn(ctx) {
					return "", nil
				}
				if e.unlink(fd, name) {
					continue
				}
			}
			directories = append(directories, name)
		}
		kept := e.listing.keep(directories)
		for _, name := range directories {
			if e.stopped != nil {
				return "", nil
			}
			e.removeTree(ctx, fd, name)
		}
		e.listing.forget(kept)
	}
	return "", nil
}

// fail notes what could not be done to name in the lowest directory of the
// branch. Removing or moving a mount point fails with EBUSY. The path is quoted,
// for a pod chose the names in it.
func (e *eraser) fail(what, name string, err error) {
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: %w", ErrMountInside, err)
	}
	where := make([]string, 0, len(e.branch)+1)
	for _, above := range e.branch {
		where = append(where, above.name)
	}
	e.faults.add(fmt.Errorf("%s %q: %w", what, path.Join(append(where, name)...), err))
}
