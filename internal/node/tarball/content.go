package tarball

import (
	"errors"
	"io"

	"github.com/katbox/katbox/internal/lib/sparse"
)

const (
	// minSparse is the size in bytes from which on holes are looked for. It saves two system calls
	// for each small file.
	minSparse = 64 << 10
	// dropEvery is how many bytes are read before the kernel may forget them: of a large file, or of
	// small files together. From then on it forgets each small file, which takes a system call.
	dropEvery = 8 << 20
	page      = 4096
)

// content writes what is in a regular file.
type content struct {
	*archiver
	item *item
	// stored is how many bytes the archive has of it, without padding: the extents, and before them
	// the map if it is sparse.
	stored  int64
	sparse  bool
	extents []sparse.Extent
	// short: the file ended before it should.
	short bool
}

// plan decides what is stored of the file. It reads nothing.
func (c *content) plan() error {
	size := c.item.Size
	c.stored = size
	c.extents = []sparse.Extent{{Length: size}}
	if size < minSparse || c.item.Allocated >= size {
		return nil
	}
	extents, err := c.findExtents()
	if err != nil {
		return err
	}
	if len(extents) == 1 && extents[0] == c.extents[0] {
		return nil
	}
	c.sparse, c.extents = true, extents
	c.stored = int64(len(sparse.AppendMap(nil, extents, size)))
	for _, x := range extents {
		c.stored += x.Length
	}
	return nil
}

// write writes what plan has decided, and what pads it to whole blocks.
func (c *content) write() error {
	if c.sparse {
		if err := c.out.write(sparse.AppendMap(nil, c.extents, c.item.Size)); err != nil {
			return err
		}
		c.at.Content, c.at.Sparse, c.at.Extents = c.out.position, true, c.extents
	}
	for _, x := range c.extents {
		if err := c.extent(x); err != nil {
			return err
		}
	}
	if c.item.file != nil {
		changed, err := c.item.file.Changed()
		if err != nil {
			return err
		}
		if changed || c.short {
			c.changed()
		}
	}
	return c.out.zeros(sparse.Padded(c.stored) - c.stored)
}

// changed notes that the file is not what it was when its header was written.
func (c *content) changed() {
	c.report.Changed++
	if len(c.report.ChangedNames) < maxNames {
		c.report.ChangedNames = append(c.report.ChangedNames, c.item.name)
	}
}

// extent writes a part of the file.
func (c *content) extent(x sparse.Extent) error {
	from := x.Offset + c.out.advance(x.Length)
	end := x.Offset + x.Length
	if from == end {
		return nil
	}
	dropped := from
	for from < end {
		if c.short {
			return c.out.zeros(end - from)
		}
		file, err := c.item.opened()
		if err != nil {
			return err
		}
		free, err := c.out.free()
		if err != nil {
			return err
		}
		b := free[:min(int64(len(free)), end-from)]
		n, err := file.ReadAt(b, from)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			c.short = true
		case err != nil && n < len(b):
			return err
		}
		c.out.took(n)
		from += int64(n)
		if from-dropped >= dropEvery {
			file.DropBehind(dropped, from)
			dropped = from
		}
	}
	if c.kept += end - dropped + page; c.kept > dropEvery {
		c.kept -= end - dropped + page
		c.item.file.DropOnClose()
	}
	return nil
}
