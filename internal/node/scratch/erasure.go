package scratch

import (
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/beneath"
)

const (
	// maxDepth is how many directories Erase holds open above each other. It closes those further
	// up, and finds them again on the way back.
	maxDepth = 64
	// maxRepeats bounds how often directories of an entry, all together, are swept again that did
	// not become empty: a process still writes into them, or the file system skips names during
	// removals. A bound for each would multiply with every level that a pod adds.
	maxRepeats = 64
	// paceEvery is how many removals Erase tries between two calls of a Pace.
	paceEvery = 256
)

// erasure is one call of Erase.
type erasure struct {
	dir    *Dir
	pace   Pace
	faults faults
	// stopped is why the erasure ends early.
	stopped error
	// tried counts removals, also those that failed. removed counts what was removed since the last
	// call of pace.
	tried, removed int
	// repeats counts sweeps of directories that had been swept before.
	repeats int
	listing listing
	// branch are the directories that are being emptied, each in the one before.
	branch []opened
	deep   deep
}

// opened is a directory that is being emptied.
type opened struct {
	fd int
	// name is empty for a directory that was found again from below.
	name string
}

// proceed is called before each removal and each step through a deep tree. It reports whether to go
// on.
func (e *erasure) proceed(ctx context.Context) bool {
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

// remove erases name in the directory at, a file or a directory. It tries rmdir first: many volumes
// are empty, and gone with one call.
func (e *erasure) remove(ctx context.Context, at int, name string) {
	if !e.proceed(ctx) {
		return
	}
	if err := kernel.Rmdirat(at, name); err == nil {
		e.removed++
		return
	}
	if !e.unlink(at, name) {
		e.removeTree(ctx, at, name)
		e.removeDeep(ctx, at, name)
	}
}

// unlink removes name unless it is a directory, and reports whether it is none.
func (e *erasure) unlink(at int, name string) bool {
	err := kernel.Unlinkat(at, name)
	if refused(err) && e.release(at, name) {
		err = kernel.Unlinkat(at, name)
	}
	switch {
	case err == nil:
		e.removed++
	case errors.Is(err, unix.EISDIR):
		return false
	case errors.Is(err, unix.EPERM) && e.dir.opener.MountedOn(at, name):
		// The covered file has a flag, and that error comes before EBUSY.
		e.fail("unlink", name, fmt.Errorf("%w: %w", ErrMountInside, err))
	case !errors.Is(err, unix.ENOENT):
		e.fail("unlink", name, err)
	}
	return true
}

// removeTree removes the directory name with all that is in it. Directories that lie too deep are
// left to [erasure.removeDeep].
func (e *erasure) removeTree(ctx context.Context, at int, name string) {
	fd, err := e.dir.opener.Directory(at, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return
	case errors.Is(err, unix.ENOTDIR):
		// Something else was put in its place.
		e.unlink(at, name)
		return
	case err != nil:
		e.fail("open", name, err)
		return
	case e.deep.isSkipped(fd):
		// It was reported when it was skipped.
		e.faults.count++
		unix.Close(fd)
		return
	case len(e.branch) >= maxDepth:
		if err := e.goDeeper(fd); err != nil {
			e.fail("open", name, err)
		}
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

// interrupted reports whether to leave the directories of the branch, because the erasure ends or a
// deep directory comes first.
func (e *erasure) interrupted() bool { return e.stopped != nil || e.deep.next >= 0 }

// empty empties the lowest directory of the branch, which is in the directory at, and removes it if
// its name is known. The error says why it is not empty, unless faults or stopped say it already;
// what is the call that failed.
func (e *erasure) empty(ctx context.Context, at int) (what string, err error) {
	here := e.branch[len(e.branch)-1]
	before := e.faults.count
	for {
		if what, err := e.sweep(ctx, here.fd); err != nil {
			return what, err
		}
		if e.interrupted() || e.faults.count > before || !e.proceed(ctx) {
			return "", nil
		}
		if here.name == "" {
			err = e.isEmpty(here.fd)
		} else {
			err = e.rmdir(at, here.name)
		}
		if !errors.Is(err, unix.ENOTEMPTY) {
			return "rmdir", err
		}
		if e.repeats == maxRepeats {
			return "rmdir", fmt.Errorf("names keep appearing in it: %w", err)
		}
		e.repeats++
		if err := beneath.Rewind(here.fd); err != nil {
			return "rewind", err
		}
	}
}

func (e *erasure) rmdir(at int, name string) error {
	err := e.dir.removeDirectory(at, name)
	if refused(err) && e.release(at, name) {
		err = e.dir.removeDirectory(at, name)
	}
	if err == nil {
		e.removed++
	}
	return err
}

// sweep removes what one pass through a directory finds.
func (e *erasure) sweep(ctx context.Context, fd int) (what string, err error) {
	// It begins small: an erasure that is interrupted soon would read a huge directory each time.
	more := true
	for size := minListing; more && !e.interrupted(); size = min(4*size, maxListing) {
		if more, err = e.listing.read(fd, size); err != nil {
			return "read", err
		}
		// removeTree reads into the same listing, so keep the directories' names.
		kept := e.listing.kept
		var directories []string
		for _, entry := range e.listing.entries {
			name := e.listing.name(entry)
			// Where the kind is not known, try unlink first: most are files.
			if entry.kind != unix.DT_DIR {
				if !e.proceed(ctx) {
					return "", nil
				}
				if e.unlink(fd, name) {
					continue
				}
			}
			directories = append(directories, name)
			e.listing.kept += len(name) + 32 // for the string itself
		}
		for _, name := range directories {
			if e.interrupted() {
				break
			}
			e.removeTree(ctx, fd, name)
		}
		e.listing.kept = kept
	}
	return "", nil
}

// fail notes that the call what failed for name in the lowest directory of the branch. It quotes
// the path: a pod chose the names.
func (e *erasure) fail(what, name string, err error) {
	where := make([]string, 0, len(e.branch)+1)
	if len(e.deep.above) > 0 {
		where = append(where, "...")
	}
	for _, above := range e.branch {
		where = append(where, above.name)
	}
	e.faults.add(fmt.Errorf("%s %q: %w", what, path.Join(append(where, name)...), mountInside(err)))
}
