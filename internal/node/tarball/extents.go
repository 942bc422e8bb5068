package tarball

import (
	"errors"
	"io"

	"github.com/katbox/katbox/internal/lib/sparse"
)

// seekEvery is how many extents are found between two calls of the pace.
const seekEvery = 64

// findExtents returns the parts of the file that hold data.
func (c *content) findExtents() ([]sparse.Extent, error) {
	file, err := c.item.opened()
	if err != nil {
		return nil, err
	}
	// The kernel reports an extent that was reserved, but never written, as data while its
	// pages are in memory after a read. Dropping them makes the archive the same each time.
	file.DropBehind(0, c.item.Size)
	m := merger{hole: 1}
	for offset := int64(0); ; {
		if m.found++; m.found%seekEvery == 0 && c.pace != nil {
			if err := c.pace(c.ctx); err != nil {
				return nil, err
			}
		}
		start, end, err := file.Data(offset)
		if errors.Is(err, io.EOF) {
			return m.extents, nil
		}
		if err != nil {
			return nil, err
		}
		m.add(sparse.Extent{Offset: start, Length: end - start})
		offset = end
	}
}

// merger collects extents, at most [sparse.MaxExtents]. When it has too many, it drops the smallest
// holes between them.
type merger struct {
	extents []sparse.Extent
	// hole is how large a hole has to be to stay.
	hole  int64
	found int
}

func (m *merger) add(x sparse.Extent) {
	m.extents = merge(m.extents, x, m.hole)
	// Half of the room is gained, so that this is rare.
	for full := sparse.MaxExtents - 1; len(m.extents) > full; full = sparse.MaxExtents / 2 {
		m.hole *= 2
		merged := m.extents[:0]
		for _, x := range m.extents {
			merged = merge(merged, x, m.hole)
		}
		m.extents = merged
	}
}

// merge appends an extent, or makes the last one longer if the hole between them is too small.
func merge(extents []sparse.Extent, x sparse.Extent, hole int64) []sparse.Extent {
	if len(extents) > 0 {
		last := &extents[len(extents)-1]
		if x.Offset-(last.Offset+last.Length) < hole {
			last.Length = x.Offset + x.Length - last.Offset
			return extents
		}
	}
	return append(extents, x)
}
