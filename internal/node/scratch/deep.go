package scratch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/beneath"
)

// maxSkipped bounds how many directories one call of Erase remembers to skip.
const maxSkipped = 1024

var errManySkipped = errors.New("too many deep directories cannot be erased")

// deep takes an erasure through a tree that is deeper than the directories it may hold open. The
// erasure closes those above, goes on with the one that lies too deep as if that were the top, and
// goes back by "..". On the way back it meets again what it could not remove.
type deep struct {
	// above are the directories above the branch, from the top. They are closed.
	above []beneath.ID
	// next is the open directory to go on with, -1 when nothing lies too deep.
	next int
	// skipped are directories that could not be emptied. Each is in one of above or in the branch.
	skipped []skippedDirectory
}

// skippedDirectory is a directory that could not be emptied, and how many are above it.
type skippedDirectory struct {
	beneath.ID
	depth int
}

// goDeeper makes the open directory fd, which is in the lowest of the branch, the next one. It
// takes over fd.
func (e *erasure) goDeeper(fd int) error {
	for _, opened := range e.branch {
		// From below a read-only subvolume of btrfs cannot be made writable.
		makeWritable(opened.fd)
		id, err := beneath.Identify(opened.fd)
		if err != nil {
			unix.Close(fd)
			return err
		}
		e.deep.above = append(e.deep.above, id)
	}
	e.deep.next = fd
	return nil
}

// removeDeep removes the directory name with what lies too deep in it for removeTree.
func (e *erasure) removeDeep(ctx context.Context, at int, name string) {
	for e.deep.next >= 0 {
		if err := e.emptyDeep(ctx); err != nil {
			e.faults.add(fmt.Errorf("go back up in %q: %w", name, err))
			return
		}
		if e.stopped != nil {
			return
		}
		e.removeTree(ctx, at, name)
	}
}

// emptyDeep goes down to the next directory, empties it and goes back up to the top.
func (e *erasure) emptyDeep(ctx context.Context) error {
	fd := e.deep.take()
	defer func() { unix.Close(fd) }()
	for e.proceed(ctx) {
		e.branch = append(e.branch, opened{fd: fd})
		what, err := e.empty(ctx, -1)
		e.branch = e.branch[:0]
		if err != nil {
			e.fail(what, ".", err)
		}
		var other int
		switch {
		case e.deep.next >= 0:
			other = e.deep.take()
		case e.stopped != nil, len(e.deep.above) == 0:
			return nil
		default:
			if other, err = e.goUp(fd); err != nil {
				return err
			}
		}
		unix.Close(fd)
		fd = other
	}
	return nil
}

// take hands over the next directory.
func (d *deep) take() int {
	fd := d.next
	d.next = -1
	return fd
}

// goUp opens the directory above an open one.
func (e *erasure) goUp(fd int) (up int, err error) {
	d := &e.deep
	last := len(d.above) - 1
	if err := e.isEmpty(fd); err != nil {
		if err := d.skip(fd); err != nil {
			return -1, err
		}
	}
	up, err = e.dir.opener.Above(fd, d.above[last])
	d.above = d.above[:last]
	return up, mountInside(err)
}

// skip notes an open directory, the one below all of above, in place of the skipped ones in it.
func (d *deep) skip(fd int) error {
	depth := len(d.above)
	for len(d.skipped) > 0 && d.skipped[len(d.skipped)-1].depth > depth {
		d.skipped = d.skipped[:len(d.skipped)-1]
	}
	if len(d.skipped) == maxSkipped {
		return errManySkipped
	}
	id, err := beneath.Identify(fd)
	d.skipped = append(d.skipped, skippedDirectory{id, depth})
	return err
}

// isSkipped reports whether to skip an open directory.
func (d *deep) isSkipped(fd int) bool {
	if len(d.skipped) == 0 {
		return false
	}
	id, err := beneath.Identify(fd)
	return err == nil && slices.ContainsFunc(d.skipped, func(s skippedDirectory) bool { return s.ID == id })
}

// isEmpty returns ENOTEMPTY when an open directory is not empty.
func (e *erasure) isEmpty(fd int) error {
	if err := beneath.Rewind(fd); err != nil {
		return err
	}
	if _, err := e.listing.read(fd, minListing); err != nil {
		return err
	}
	if len(e.listing.entries) > 0 {
		return unix.ENOTEMPTY
	}
	return nil
}
