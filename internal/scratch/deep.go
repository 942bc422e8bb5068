package scratch

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/mount"
)

// maxLeft bounds how many directories one call of Erase remembers to leave alone.
const maxLeft = 1024

var (
	errMoved    = errors.New("directories were moved while they were erased")
	errManyLeft = errors.New("too many deep directories cannot be erased")
)

// deep is how an eraser gets through a tree that is deeper than the directories it may
// hold open. It closes those above, goes on with the one that lies too deep as if that
// were the top, and goes back by "..", one directory at a time. So each directory on
// the way back sees all that is left in it once more.
type deep struct {
	// above are the directories above the branch, from the top. They are closed.
	above []inode
	// next is the open directory to go on with, -1 when nothing lies too deep.
	next int
	// left are directories that could not be emptied, to be passed by. Each is in one
	// of above or in the branch.
	left []leftAlone
}

// leftAlone is a directory that could not be emptied, and how many are above it.
type leftAlone struct {
	inode
	depth int
}

// goDeeper makes the open directory fd, which is in the lowest of the branch, the next
// one to go on with. It closes fd sooner or later.
func (e *eraser) goDeeper(fd int) error {
	for _, opened := range e.branch {
		// From below a read-only subvolume of btrfs cannot be made writable.
		makeWritable(opened.fd)
		id, err := identify(opened.fd)
		if err != nil {
			unix.Close(fd)
			return err
		}
		e.deep.above = append(e.deep.above, id)
	}
	e.deep.next = fd
	return nil
}

// removeDeep removes what lay too deep for removeTree in the directory name, and then
// that directory.
func (e *eraser) removeDeep(ctx context.Context, at int, name string) {
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
func (e *eraser) emptyDeep(ctx context.Context) error {
	fd := e.deep.take()
	defer func() { unix.Close(fd) }()
	for e.turn(ctx) {
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

// take returns the next directory, which no other erasure has then.
func (d *deep) take() int {
	fd := d.next
	d.next = -1
	return fd
}

// goUp opens the directory above an open one. That it is the one from which the way led
// down is checked: a pod may have moved the lower one.
func (e *eraser) goUp(fd int) (up int, err error) {
	d := &e.deep
	last := len(d.above) - 1
	if err := e.isEmpty(fd); err != nil {
		if err := d.leave(fd); err != nil {
			return -1, err
		}
	}
	err = kernel.IgnoreEINTR(func() error {
		up, err = unix.Openat(fd, "..", openFlags, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open ..: %w", err)
	}
	id, err := identify(up)
	if err == nil && id != d.above[last] {
		err = errMoved
	}
	if err == nil {
		var on uint64
		if on, err = mount.ID(up); err == nil && on != e.dir.mountID {
			err = ErrMountInside
		}
	}
	if err != nil {
		unix.Close(up)
		return -1, err
	}
	d.above = d.above[:last]
	return up, nil
}

// leave notes that an open directory, the one below all of above, is to be passed by,
// in place of what is in it.
func (d *deep) leave(fd int) error {
	depth := len(d.above)
	for len(d.left) > 0 && d.left[len(d.left)-1].depth > depth {
		d.left = d.left[:len(d.left)-1]
	}
	if len(d.left) == maxLeft {
		return errManyLeft
	}
	id, err := identify(fd)
	d.left = append(d.left, leftAlone{id, depth})
	return err
}

// isLeft tells whether an open directory is to be passed by.
func (d *deep) isLeft(fd int) bool {
	if len(d.left) == 0 {
		return false
	}
	id, err := identify(fd)
	for _, left := range d.left {
		if err == nil && left.inode == id {
			return true
		}
	}
	return false
}

// isEmpty returns ENOTEMPTY when there is something in an open directory.
func (e *eraser) isEmpty(fd int) error {
	if err := rewind(fd); err != nil {
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

func identify(fd int) (inode, error) {
	var st unix.Stat_t
	if err := kernel.IgnoreEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return inode{}, fmt.Errorf("stat: %w", err)
	}
	return inode{uint64(st.Dev), st.Ino}, nil
}
