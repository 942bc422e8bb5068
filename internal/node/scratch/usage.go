package scratch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/beneath"
)

// maxLinks bounds how many files with several links Usage remembers: a pod can make as many as
// the file system has inodes.
const maxLinks = 1 << 16

// Usage returns the bytes that a volume's files and directories occupy on disk, and their number,
// including the data directory itself. A file with several links inside counts once, directories
// mounted inside do not. If the tree changes meanwhile, the result lies between before and after. A
// nil pace means no pauses. The error wraps fs.ErrNotExist when there is no data directory.
func (d *Dir) Usage(ctx context.Context, p volume.Place, pace Pace) (bytes, inodes int64, err error) {
	fd, err := d.openDataUnnoticed(p)
	if err != nil {
		return 0, 0, err
	}
	c := &census{dir: d, branch: beneath.NewBranch(d.opener), links: map[beneath.ID]uint64{}}
	defer c.branch.Close()
	if err := c.walk(ctx, fd, pace); err != nil {
		return 0, 0, fmt.Errorf("usage of %s: %w", d.Path(p), err)
	}
	bytes, inodes = c.result()
	return bytes, inodes, nil
}

// openDataUnnoticed opens a volume's data directory as [beneath.Opener.Unnoticed] does. The errors are those of
// openParent.
func (d *Dir) openDataUnnoticed(p volume.Place) (int, error) {
	if err := check(p); err != nil {
		return -1, err
	}
	fd, err := d.opener.UnnoticedPath(d.fd(), p.String())
	switch {
	case err == nil:
		return fd, nil
	case !errors.Is(err, unix.ENOSYS):
		return -1, d.openError(p, err)
	}
	podFD, err := d.openPod(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(podFD)
	fd, err = d.opener.Unnoticed(podFD, string(p.ID))
	if err != nil {
		return -1, d.openError(p, err)
	}
	return fd, nil
}

// census is one call of Usage.
type census struct {
	dir           *Dir
	branch        *beneath.Branch
	bytes, inodes int64
	// links holds the files with several links, and how many of their links have not been met yet.
	links map[beneath.ID]uint64
	// crowded: links was full once. Since then each link of a file that is not in links counts a
	// share of the file; shares is their sum.
	crowded bool
	shares  float64
}

// walk counts an open directory and all that is in it, in batches.
func (c *census) walk(ctx context.Context, fd int, pace Pace) error {
	st, err := kernel.Fstat(fd)
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("stat: %w", err)
	}
	c.enter(fd, &st)
	seen := 1
	for c.branch.Depth() > 0 {
		err := ctx.Err()
		if err == nil && pace != nil && seen == paceEvery {
			seen, err = 0, pace(ctx, seen)
		}
		if err == nil {
			err = c.step()
		}
		if err != nil {
			return err
		}
		seen++
	}
	if pace != nil {
		return pace(ctx, seen)
	}
	return nil
}

// step counts one name in the lowest directory, or leaves it.
func (c *census) step() error {
	name, err := c.branch.Next()
	if err != nil {
		return err
	}
	if name == "" {
		return mountInside(c.branch.Leave())
	}
	here := c.branch.FD()
	st, err := kernel.Lstatat(here, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("stat %q: %w", name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		c.count(&st)
		return nil
	}
	fd, err := c.dir.opener.Unnoticed(here, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		return fmt.Errorf("open %q: %w", name, err)
	}
	c.enter(fd, &st)
	return nil
}

// enter counts an open directory and continues in it. It takes over fd. If st is of another
// directory that had the name before, the way back may be an error.
func (c *census) enter(fd int, st *unix.Stat_t) {
	c.count(st)
	c.branch.Enter(fd, beneath.ID{Dev: st.Dev, Ino: st.Ino})
}

func (c *census) count(st *unix.Stat_t) {
	// st_blocks counts units of 512 bytes, whatever the block size is.
	size := st.Blocks * 512
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		file := beneath.ID{Dev: st.Dev, Ino: st.Ino}
		left, met := c.links[file]
		c.crowded = c.crowded || len(c.links) >= maxLinks
		switch {
		case met && left > 1:
			c.links[file] = left - 1
			return
		case met:
			delete(c.links, file)
			return
		case c.crowded:
			c.bytes += size / int64(st.Nlink)
			c.shares += 1 / float64(st.Nlink)
			return
		}
		c.links[file] = uint64(st.Nlink) - 1
	}
	c.bytes += size
	c.inodes++
}

func (c *census) result() (bytes, inodes int64) {
	return c.bytes, c.inodes + int64(math.Round(c.shares))
}
