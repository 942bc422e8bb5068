package files

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
)

const (
	// paceEvery is how many names are looked at between two calls of a Pace.
	paceEvery = 64
	// maxWalkPath bounds the paths of a walk: each entry has its own, and without a bound a pod could
	// make them as long as memory.
	maxWalkPath = 64 << 10
)

// Walk calls fn for what is at a path and, if that is a directory, for all below it: depth first,
// parents before what is in them, and in a directory in the order of the file system, which stays
// the same while nothing changes. open opens the entry as [Tree.Open] does, during the call of fn.
//
// If fn returns fs.SkipDir for a directory, Walk does not enter it. Any other error of fn, of pace or
// of ctx ends Walk, which returns it as it is. A name that vanishes meanwhile is left out. Walk
// enters no directory whose path is longer than 64 KiB; such an [Entry] is TooDeep.
func (t *Tree) Walk(ctx context.Context, p paths.Path, pace Pace, fn func(e Entry, open func() (*File, error)) error) error {
	fd, e, err := t.look(p)
	if err != nil {
		return err
	}
	w := &walk{tree: t, branch: beneath.NewBranch(t.opener), fn: fn}
	defer w.branch.Close()
	if err := w.visit(fd, e); err != nil {
		return err
	}
	for seen := 0; w.branch.Depth() > 0; seen++ {
		if seen%paceEvery == 0 {
			err = pace.Wait(ctx)
		} else {
			err = ctx.Err()
		}
		if err == nil {
			err = w.step()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walk is one call of Walk.
type walk struct {
	tree   *Tree
	branch *beneath.Branch
	// here is the lowest directory of the branch. Those above it are its beginnings: a path of its own
	// for each of them would take as much as the square of the depth.
	here paths.Path
	fn   func(Entry, func() (*File, error)) error
}

// step visits the next name in the lowest directory, or leaves it.
func (w *walk) step() error {
	here := w.here
	name, err := w.branch.Next()
	if err == nil && name == "" {
		w.here = here.Above()
		err = w.branch.Leave()
	}
	if err != nil {
		return at(here, err)
	}
	if name == "" {
		return nil
	}
	p := here.Join(name)
	fd, e, err := w.tree.lookAt(w.branch.FD(), p)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return at(p, err)
	}
	return w.visit(fd, e)
}

// visit hands an entry to fn, and enters it if it is a directory. It takes over the handle fd.
func (w *walk) visit(fd int, e Entry) error {
	defer closeHandle(fd)
	e.TooDeep = e.Type == Directory && len(e.Path.String()) > maxWalkPath
	err := w.fn(e, func() (*File, error) { return openLooked(fd, e) })
	switch {
	case errors.Is(err, fs.SkipDir) && e.Type == Directory:
		return nil
	case err != nil:
		return err
	case e.Type != Directory || e.TooDeep:
		return nil
	}
	id, err := beneath.Identify(fd)
	if err != nil {
		return at(e.Path, err)
	}
	opened, err := beneath.ReopenUnnoticed(fd)
	if err != nil {
		return at(e.Path, err)
	}
	w.branch.Enter(opened, id)
	w.here = e.Path
	return nil
}
