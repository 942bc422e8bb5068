package scratch

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
)

// WithData calls do with the open data directory of a volume, and returns its error. The other errors are those of
// [Dir.Usage].
func (d *Dir) WithData(p volume.Place, do func(fd int) error) error {
	fd, err := d.openDataUnnoticed(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

// Mark calls mark with each open directory and regular file of a volume, the data directory last: that it is marked
// says that all are. It leaves out what is mounted inside, and what cannot be opened without an effect: links, FIFOs,
// sockets and devices. A nil pace means no pauses.
func (d *Dir) Mark(ctx context.Context, p volume.Place, mark func(fd int) error, pace Pace) error {
	m := &marking{dir: d, branch: beneath.NewBranch(d.opener), mark: mark}
	defer m.branch.Close()
	return d.WithData(p, func(fd int) error {
		top, err := beneath.ReopenUnnoticed(fd)
		if err == nil {
			err = m.walk(ctx, top, pace)
		}
		if err == nil {
			err = mark(fd)
		}
		if err != nil {
			return fmt.Errorf("mark the files of %s: %w", d.Path(p), err)
		}
		return nil
	})
}

// marking is one call of Mark.
type marking struct {
	dir    *Dir
	branch *beneath.Branch
	mark   func(fd int) error
}

// walk marks all that is in an open directory, in batches.
func (m *marking) walk(ctx context.Context, fd int, pace Pace) error {
	id, err := beneath.Identify(fd)
	if err != nil {
		unix.Close(fd)
		return err
	}
	m.branch.Enter(fd, id)
	for seen := 1; m.branch.Depth() > 0; seen++ {
		err := ctx.Err()
		if err == nil && pace != nil && seen == paceEvery {
			seen, err = 0, pace(ctx, seen)
		}
		if err == nil {
			err = m.step()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step marks one name in the lowest directory, or leaves it.
func (m *marking) step() error {
	name, err := m.branch.Next()
	if err != nil {
		return err
	}
	if name == "" {
		return mountInside(m.branch.Leave())
	}
	handle, err := m.dir.opener.Look(m.branch.FD(), name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		return fmt.Errorf("look at %q: %w", name, err)
	}
	defer unix.Close(handle)
	if err := m.found(handle); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// found marks what an O_PATH handle stands for, if that is a file or a directory, and goes on in a directory.
func (m *marking) found(handle int) error {
	st, err := kernel.Fstat(handle)
	if err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return nil
	}
	fd, err := kernel.Openat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", handle), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOATIME)
	if err != nil {
		return err
	}
	err = m.mark(fd)
	if err == nil && kind == unix.S_IFDIR {
		m.branch.Enter(fd, beneath.ID{Dev: st.Dev, Ino: st.Ino})
		return nil
	}
	unix.Close(fd)
	return err
}
