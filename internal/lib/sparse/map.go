package sparse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxMap is the largest map that archive/tar reads, in bytes. No file needs more: [MaxExtents].
const maxMap = 1 << 20

// MaxExtents is how many extents a map may have here. Each takes 40 bytes at most.
const MaxExtents = 16 << 10

// AppendMap appends the map of a file of the given size, in whole blocks.
func AppendMap(b []byte, extents []Extent, size int64) []byte {
	begin := len(b)
	count := len(extents)
	end := int64(0)
	if count > 0 {
		end = extents[count-1].Offset + extents[count-1].Length
	}
	// As GNU tar does: an empty extent gives a file its size that ends with a hole.
	if end < size {
		count++
	}
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), '\n') }
	number(int64(count))
	for _, e := range extents {
		number(e.Offset)
		number(e.Length)
	}
	if end < size {
		number(size)
		number(0)
	}
	length := int64(len(b) - begin)
	return append(b, make([]byte, Padded(length)-length)...)
}

// ReadMap reads the map of a file of the given size, of which stored bytes follow. It returns the
// extents in order, none of them empty, and the length of the map in bytes.
func ReadMap(r io.Reader, size, stored int64) (extents []Extent, length int64, err error) {
	text := &mapText{r: r, left: min(stored, maxMap)}
	count, err := text.number()
	if err != nil {
		return nil, 0, err
	}
	end, data := int64(0), int64(0)
	for range count {
		offset, err := text.number()
		if err != nil {
			return nil, 0, err
		}
		length, err := text.number()
		if err != nil {
			return nil, 0, err
		}
		if offset < end || offset > size || length > size-offset {
			return nil, 0, fmt.Errorf("a map of holes has an extent of %d bytes at %d, after one that ends at %d, in a file of %d bytes",
				length, offset, end, size)
		}
		end = offset + length
		data += length
		if length > 0 {
			extents = append(extents, Extent{offset, length})
		}
	}
	if data != stored-text.length {
		return nil, 0, fmt.Errorf("a map of holes has %d bytes of data, and %d follow", data, stored-text.length)
	}
	return extents, text.length, nil
}

// mapText reads a map block by block.
type mapText struct {
	r io.Reader
	// left is how many bytes may still be read; length is how many were.
	left, length int64
	text         []byte
}

func (m *mapText) number() (int64, error) {
	for {
		digits, rest, ok := bytes.Cut(m.text, []byte("\n"))
		if ok {
			m.text = rest
			n, err := strconv.ParseInt(string(digits), 10, 64)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("a map of holes has %q where a number belongs", digits)
			}
			return n, nil
		}
		if len(m.text) > BlockSize || m.left < BlockSize {
			return 0, errors.New("a map of holes does not end")
		}
		block := make([]byte, BlockSize)
		if _, err := io.ReadFull(m.r, block); err != nil {
			return 0, err
		}
		m.text = append(m.text, block...)
		m.left -= BlockSize
		m.length += BlockSize
	}
}
