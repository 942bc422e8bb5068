package scratch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// maxOpen is how many directories Usage holds open above each other.
	maxOpen = 64
	// maxLinks bounds how many files with several links Usage remembers: a pod can make as many as
	// the file system has inodes.
	maxLinks = 1 << 16
)

// Usage returns the bytes that a volume's files and directories occupy on disk, and their number,
// including the data directory itself. A file with several links inside counts once, directories
// mounted inside do not. If the tree changes meanwhile, the result lies between before and after. A
// nil pace means no pauses. The error wraps fs.ErrNotExist when there is no data directory.
func (d *Dir) Usage(ctx context.Context, p volume.Place, pace Pace) (bytes, inodes int64, err error) {
	fd, err := d.openDataUnnoticed(p)
	if err != nil {
		return 0, 0, err
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	c := &census{dir: d, buf: buf, links: map[inode]uint64{}}
	defer c.close()
	if err := c.walk(ctx, fd, pace); err != nil {
		return 0, 0, fmt.Errorf("usage of %s: %w", d.Path(p), err)
	}
	bytes, inodes = c.result()
	return bytes, inodes, nil
}

// openDataUnnoticed opens a volume's data directory as openUnnoticed does. The errors are those of
// openParent.
func (d *Dir) openDataUnnoticed(p volume.Place) (int, error) {
	if err := check(p); err != nil {
		return -1, err
	}
	if !d.noOpenat2.Load() {
		// openat2 checks each element of the path, so one call is enough.
		fd, err := openat2(d.fd(), p.String(), openFlags|unix.O_NOATIME)
		switch {
		case err == nil:
			return fd, nil
		case !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM):
			return -1, d.openError(p, err)
		}
	}
	podFD, err := d.openPod(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(podFD)
	fd, err := d.openUnnoticed(podFD, string(p.ID))
	if err != nil {
		return -1, d.openError(p, err)
	}
	return fd, nil
}

// census is one call of Usage. It closes the directories above the lowest maxOpen, and finds them
// again on the way back.
type census struct {
	dir           *Dir
	buf           *buffer
	bytes, inodes int64
	// links holds the files with several links, and how many of their links have not been met yet.
	links map[inode]uint64
	// crowded: links was full once. Since then each link of a file that is not in links counts a
	// share of the file; shares is their sum.
	crowded bool
	shares  float64
	levels  []level
}

// level is a directory that is being read.
type level struct {
	inode
	// fd is -1 while the directory is closed; offset is where to continue then.
	fd     int
	offset int64
	// batch are names that were read and not yet counted.
	batch []string
}

// walk counts an open directory and all that is in it, in batches.
func (c *census) walk(ctx context.Context, fd int, pace Pace) error {
	st, err := kernel.Fstat(fd)
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("stat: %w", err)
	}
	if err := c.enter(fd, &st); err != nil {
		return err
	}
	seen := 1
	for len(c.levels) > 0 {
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

// step counts one name in the lowest directory.
func (c *census) step() error {
	here := &c.levels[len(c.levels)-1]
	if len(here.batch) == 0 {
		batch, err := c.buf.next(here.fd)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return c.leave()
		}
		here.batch = batch
	}
	name := here.batch[0]
	here.batch = here.batch[1:]

	st, err := kernel.Lstatat(here.fd, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("stat %q: %w", name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		c.count(&st)
		return nil
	}
	fd, err := c.dir.openUnnoticed(here.fd, name)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return nil
	case err != nil:
		return fmt.Errorf("open %q: %w", name, err)
	}
	return c.enter(fd, &st)
}

// enter counts an open directory and continues in it. It takes over fd. If st is of another
// directory that had the name before, openAbove may return an error.
func (c *census) enter(fd int, st *unix.Stat_t) error {
	c.count(st)
	c.levels = append(c.levels, level{inode: inode{st.Dev, st.Ino}, fd: fd})
	if len(c.levels) <= maxOpen {
		return nil
	}
	far := &c.levels[len(c.levels)-1-maxOpen]
	if far.fd < 0 {
		// It was closed before, and not needed since.
		return nil
	}
	offset, err := unix.Seek(far.fd, 0, unix.SEEK_CUR)
	if err != nil {
		return fmt.Errorf("lseek: %w", err)
	}
	unix.Close(far.fd)
	far.fd, far.offset = -1, offset
	return nil
}

// leave goes back to the directory above, which it opens again if it was closed.
func (c *census) leave() error {
	last := len(c.levels) - 1
	child := c.levels[last]
	defer unix.Close(child.fd)
	c.levels = c.levels[:last]
	if last == 0 || c.levels[last-1].fd >= 0 {
		return nil
	}
	above := &c.levels[last-1]
	fd, err := c.dir.openAbove(child.fd, above.inode)
	if err != nil {
		return err
	}
	above.fd = fd
	// As in openUnnoticed; here it is rare, so a call of its own does.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NOATIME)
	_, err = unix.Seek(fd, above.offset, unix.SEEK_SET)
	return err
}

func (c *census) count(st *unix.Stat_t) {
	// st_blocks counts units of 512 bytes, whatever the block size is.
	size := st.Blocks * 512
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		file := inode{st.Dev, st.Ino}
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

// close closes the directories that are still open.
func (c *census) close() {
	for _, l := range c.levels {
		if l.fd >= 0 {
			unix.Close(l.fd)
		}
	}
}
