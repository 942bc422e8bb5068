// Package boltfile checks the structure of a bbolt file before bbolt maps it, not the values in it.
//
// bbolt trusts what it finds. A page that points to itself makes it loop or overflow its stack,
// which no recover catches, and it overwrites a page that is in use but listed as free. Its own
// checker meets the same traps. [Check] reads each page once, and maps none.
package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of a bbolt file, version 2. Numbers have the byte order of the machine.
const (
	magic      = 0xED0CDAED
	version    = 2
	noFreelist = ^uint64(0)

	headerSize  = 16 // of a page: id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // of the table that follows the header
	bucketSize  = 16 // of the header of a bucket: root page uint64, sequence uint64
	metaSize    = 64 // with the checksum in its last 8 bytes

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketElement = 0x01 // flag of a leaf element

	minPageSize = 1 << 10
	maxPageSize = 1 << 24

	// maxDepth is far beyond what fits on a disk: with two children in each branch, a tree of this
	// depth has 2^64 leaves.
	maxDepth = 64
)

var order = binary.NativeEndian

// Meta is a meta page. A file has two; a commit writes the older one anew.
type Meta struct {
	At          int64 // offset of the page in the file
	PageSize    uint64
	Transaction uint64

	root     uint64 // page of the bucket of buckets
	freelist uint64 // page of the free list
	pages    uint64 // pages in use or free; those after them were never used
}

// Newest returns the newer valid meta page of a file of the given size.
func Newest(r io.ReaderAt, size int64) (Meta, error) {
	first, ok := readMeta(r, 0)
	if !ok {
		// The second one follows a page of unknown size.
		for at := int64(minPageSize); at <= maxPageSize && at < size; at *= 2 {
			if m, ok := readMeta(r, at); ok && m.PageSize == uint64(at) {
				return m, nil
			}
		}
		return Meta{}, errors.New("neither of its two meta pages is valid")
	}
	second, ok := readMeta(r, int64(first.PageSize))
	if ok && second.PageSize == first.PageSize && second.Transaction > first.Transaction {
		return second, nil
	}
	return first, nil
}

func readMeta(r io.ReaderAt, at int64) (Meta, bool) {
	var b [metaSize]byte
	if _, err := r.ReadAt(b[:], at+headerSize); err != nil {
		return Meta{}, false
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	m := Meta{
		At:          at,
		PageSize:    uint64(order.Uint32(b[8:])),
		root:        order.Uint64(b[16:]),
		freelist:    order.Uint64(b[32:]),
		pages:       order.Uint64(b[40:]),
		Transaction: order.Uint64(b[48:]),
	}
	valid := order.Uint32(b[0:]) == magic && order.Uint32(b[4:]) == version &&
		order.Uint64(b[metaSize-8:]) == sum.Sum64() &&
		m.PageSize >= minPageSize && m.PageSize <= maxPageSize && m.PageSize&(m.PageSize-1) == 0
	return m, valid
}

// Check reads a file of the given size and returns what is wrong first with its structure.
func Check(r io.ReaderAt, size int64) error {
	m, err := Newest(r, size)
	if err != nil {
		return err
	}
	if m.pages > uint64(size)/m.PageSize {
		return fmt.Errorf("it has %d bytes, too few for its %d pages", size, m.pages)
	}
	c := checker{r: r, meta: m, used: make([]bool, m.pages)}
	if err := c.tree(m.root, nil, nil, 0); err != nil || m.freelist == noFreelist {
		return err
	}
	return c.freelist(m.freelist)
}

type checker struct {
	r    io.ReaderAt
	meta Meta
	used []bool // by page number
	// pages has a page of each depth, which the next one of that depth replaces.
	pages [][]byte
}

// page is a page with the pages that it overflows into, or the inline page of a small bucket.
type page struct {
	name  string
	flags uint16
	count int
	data  []byte
}

func parsePage(name string, data []byte) page {
	return page{name, order.Uint16(data[8:]), int(order.Uint16(data[10:])), data}
}

func (p page) wrong(format string, args ...any) error {
	return fmt.Errorf("its %s "+format, append([]any{p.name}, args...)...)
}

// claim notes that pages have a use, and refuses a second one.
func (c *checker) claim(id, count uint64) error {
	for i := range count {
		if id+i < 2 || id+i >= c.meta.pages {
			return fmt.Errorf("it refers to page %d of %d", id+i, c.meta.pages)
		}
		if c.used[id+i] {
			return fmt.Errorf("its page %d has two uses", id+i)
		}
		c.used[id+i] = true
	}
	return nil
}

// read claims a page with its overflow and reads it. The page is valid until another one of its depth
// is read.
func (c *checker) read(id uint64, depth int) (page, error) {
	if err := c.claim(id, 1); err != nil {
		return page{}, err
	}
	for depth >= len(c.pages) {
		c.pages = append(c.pages, make([]byte, c.meta.PageSize))
	}
	data := c.pages[depth]
	for at := int64(id * c.meta.PageSize); ; {
		if _, err := c.r.ReadAt(data, at); err != nil {
			return page{}, fmt.Errorf("its page %d cannot be read: %w", id, err)
		}
		if got := order.Uint64(data); got != id {
			return page{}, fmt.Errorf("its page %d says it is page %d", id, got)
		}
		overflow := uint64(order.Uint32(data[12:]))
		if uint64(len(data)) == (1+overflow)*c.meta.PageSize {
			return parsePage(fmt.Sprintf("page %d", id), data), nil
		}
		if err := c.claim(id+1, overflow); err != nil {
			return page{}, err
		}
		data = make([]byte, (1+overflow)*c.meta.PageSize)
	}
}

// tree checks the subtree at a page. Its keys are at least from and less than to, unless nil.
func (c *checker) tree(id uint64, from, to []byte, depth int) error {
	p, err := c.read(id, depth)
	if err != nil {
		return err
	}
	return c.node(p, from, to, depth)
}

// node checks a branch or a leaf and all below it.
func (c *checker) node(p page, from, to []byte, depth int) error {
	table := headerSize + p.count*elementSize
	switch {
	case depth > maxDepth:
		return errors.New("its tree is too deep")
	case p.flags != leafPage && p.flags != branchPage:
		return p.wrong("is neither branch nor leaf")
	case p.flags == branchPage && p.count == 0:
		return p.wrong("has no children")
	case table > len(p.data):
		return p.wrong("has no room for %d elements", p.count)
	}
	keys := make([][]byte, p.count)
	for i := range keys {
		// A branch's element is: position uint32, key size uint32, page uint64. A leaf's is: flags,
		// position, key size, value size, each uint32. The position counts from the element.
		e, begin, valueSize, flags := p.element(i), uint64(headerSize+i*elementSize), uint64(0), uint32(0)
		if p.flags == leafPage {
			flags, e, valueSize = order.Uint32(e), e[4:], uint64(order.Uint32(e[12:]))
		}
		begin += uint64(order.Uint32(e))
		middle := begin + uint64(order.Uint32(e[4:]))
		end := middle + valueSize
		if begin < uint64(table) || end > uint64(len(p.data)) {
			return p.wrong("has an element outside of the page")
		}
		keys[i] = p.data[begin:middle]
		ordered := i > 0 && bytes.Compare(keys[i-1], keys[i]) < 0 || i == 0 && bytes.Compare(from, keys[i]) <= 0
		if !ordered || to != nil && bytes.Compare(keys[i], to) >= 0 {
			return p.wrong("has keys out of order")
		}
		if flags&bucketElement != 0 {
			if err := c.bucket(p, p.data[middle:end], depth); err != nil {
				return err
			}
		}
	}
	if p.flags == leafPage {
		return nil
	}
	for i, key := range keys {
		end := to
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		if err := c.tree(order.Uint64(p.element(i)[8:]), key, end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p page) element(i int) []byte { return p.data[headerSize+i*elementSize:][:elementSize] }

// bucket checks a bucket, which is the value of a leaf's element: a header, and the page itself if
// the bucket is small.
func (c *checker) bucket(p page, value []byte, depth int) error {
	if len(value) < bucketSize {
		return p.wrong("has a bucket of %d bytes", len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	if len(value) >= bucketSize+headerSize {
		if inline := parsePage(p.name, value[bucketSize:]); inline.flags == leafPage {
			return c.node(inline, nil, nil, depth+1)
		}
	}
	return p.wrong("has a damaged bucket")
}

// freelist checks that no free page is in use.
func (c *checker) freelist(id uint64) error {
	p, err := c.read(id, 0)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return p.wrong("is not the free list")
	}
	ids, count := p.data[headerSize:], uint64(p.count)
	if p.count == 0xFFFF {
		// The header has no room for the count: the first number is it.
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return p.wrong("has no room for %d free pages", count)
	}
	for i := range count {
		if err := c.claim(order.Uint64(ids[i*8:]), 1); err != nil {
			return err
		}
	}
	return nil
}
