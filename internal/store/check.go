package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of a bbolt file, version 2. All numbers are in the byte order of
// the machine.
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	boltNoFreelist = ^uint64(0)

	pageHeaderSize   = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize      = 16 // of the table that follows the header of a page
	bucketHeaderSize = 16 // root page uint64, sequence uint64
	metaSize         = 64
	metaChecksumAt   = 56

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketElement = 0x01 // flag of a leaf element

	minPageSize = 1 << 10
	maxPageSize = 1 << 24

	// maxDepth is far beyond what fits on a disk: even with two children to a
	// branch, a tree of this depth has 2^64 leaves.
	maxDepth = 64
)

var order = binary.NativeEndian

// checkFile reads a bbolt file of the given size and returns the first thing
// that is wrong with its structure: not with the values in it.
//
// bbolt checks only its meta pages when it opens a file. It follows whatever
// else it finds: a page that points to itself is an endless loop or overflows
// the stack, which no recover catches, and a page that is in use but also
// listed as free is overwritten by a later commit. bbolt's own checker runs
// into the same traps, so this one reads the file rather than map it, and
// visits each page once.
func checkFile(r io.ReaderAt, size int64) error {
	m, err := readMeta(r, size)
	if err != nil {
		return err
	}
	if m.pages > uint64(size)/m.pageSize {
		return fmt.Errorf("it has %d bytes, too few for its %d pages", size, m.pages)
	}
	c := checker{r: r, meta: m, used: make([]bool, m.pages)}
	if err := c.tree(m.root, nil, nil, 0); err != nil {
		return err
	}
	if m.freelist == boltNoFreelist {
		return nil
	}
	return c.freelist(m.freelist)
}

// meta is what a meta page says.
type meta struct {
	pageSize uint64
	root     uint64 // page of the bucket of buckets
	freelist uint64 // page of the free list
	pages    uint64 // pages in use or free; what follows them is not used yet
	txid     uint64
	at       int64 // offset of the meta page
}

// readMeta returns the newer valid one of the two meta pages.
func readMeta(r io.ReaderAt, size int64) (meta, error) {
	first, ok := metaAt(r, 0)
	if !ok {
		// The second one comes after a page of unknown size.
		for at := int64(minPageSize); at <= maxPageSize && at < size; at *= 2 {
			if m, ok := metaAt(r, at); ok && m.pageSize == uint64(at) {
				return m, nil
			}
		}
		return meta{}, errors.New("neither of its two meta pages is valid")
	}
	if second, ok := metaAt(r, int64(first.pageSize)); ok &&
		second.pageSize == first.pageSize && second.txid > first.txid {
		return second, nil
	}
	return first, nil
}

func metaAt(r io.ReaderAt, at int64) (meta, bool) {
	var b [metaSize]byte
	if _, err := r.ReadAt(b[:], at+pageHeaderSize); err != nil {
		return meta{}, false
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaChecksumAt])
	m := meta{
		pageSize: uint64(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		pages:    order.Uint64(b[40:]),
		txid:     order.Uint64(b[48:]),
		at:       at,
	}
	valid := order.Uint32(b[0:]) == boltMagic &&
		order.Uint32(b[4:]) == boltVersion &&
		order.Uint64(b[metaChecksumAt:]) == sum.Sum64() &&
		m.pageSize >= minPageSize && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0
	return m, valid
}

// checker walks a file once.
type checker struct {
	r    io.ReaderAt
	meta meta
	used []bool // by page number
}

// page is a page with those that it overflows into, or the inline page of a
// small bucket.
type page struct {
	name  string
	flags uint16
	count int
	data  []byte
}

func parsePage(name string, data []byte) page {
	return page{
		name:  name,
		flags: order.Uint16(data[8:]),
		count: int(order.Uint16(data[10:])),
		data:  data,
	}
}

// claim notes that a page has a use, and refuses a second one.
func (c *checker) claim(id uint64) error {
	if id < 2 || id >= c.meta.pages {
		return fmt.Errorf("it refers to page %d of %d", id, c.meta.pages)
	}
	if c.used[id] {
		return fmt.Errorf("its page %d has two uses", id)
	}
	c.used[id] = true
	return nil
}

// read claims a page with its overflow and reads it.
func (c *checker) read(id uint64) (page, error) {
	if err := c.claim(id); err != nil {
		return page{}, err
	}
	data := make([]byte, c.meta.pageSize)
	at := int64(id * c.meta.pageSize)
	if _, err := c.r.ReadAt(data, at); err != nil {
		return page{}, fmt.Errorf("its page %d cannot be read: %w", id, err)
	}
	if got := order.Uint64(data); got != id {
		return page{}, fmt.Errorf("its page %d says it is page %d", id, got)
	}
	overflow := uint64(order.Uint32(data[12:]))
	for i := uint64(1); i <= overflow; i++ {
		if err := c.claim(id + i); err != nil {
			return page{}, err
		}
	}
	if overflow > 0 {
		rest := make([]byte, (overflow+1)*c.meta.pageSize)
		if _, err := c.r.ReadAt(rest, at); err != nil {
			return page{}, fmt.Errorf("its page %d cannot be read: %w", id, err)
		}
		data = rest
	}
	return parsePage(fmt.Sprintf("page %d", id), data), nil
}

// tree checks the subtree at a page, whose keys must be at least from and less
// than to, as far as these are not nil.
func (c *checker) tree(id uint64, from, to []byte, depth int) error {
	if depth > maxDepth {
		return errors.New("its tree is too deep")
	}
	p, err := c.read(id)
	if err != nil {
		return err
	}
	switch p.flags {
	case leafPage:
		return c.leaf(p, from, to, depth)
	case branchPage:
		return c.branch(p, from, to, depth)
	}
	return fmt.Errorf("its %s is neither branch nor leaf", p.name)
}

func (c *checker) branch(p page, from, to []byte, depth int) error {
	if p.count == 0 {
		return fmt.Errorf("its %s has no children", p.name)
	}
	if err := p.checkTable(); err != nil {
		return err
	}
	// An element is: position uint32, key size uint32, page uint64.
	keys := make([][]byte, p.count)
	for i := range keys {
		key, err := p.slice(i, order.Uint32(p.element(i)), 0, order.Uint32(p.element(i)[4:]))
		if err != nil {
			return err
		}
		keys[i] = key
	}
	if err := p.checkOrder(keys, from, to); err != nil {
		return err
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

func (c *checker) leaf(p page, from, to []byte, depth int) error {
	if err := p.checkTable(); err != nil {
		return err
	}
	// An element is: flags uint32, position uint32, key size uint32, value size uint32.
	keys := make([][]byte, p.count)
	for i := range keys {
		e := p.element(i)
		pos, keySize, valueSize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key, err := p.slice(i, pos, 0, keySize)
		if err != nil {
			return err
		}
		keys[i] = key
		value, err := p.slice(i, pos, keySize, valueSize)
		if err != nil {
			return err
		}
		if order.Uint32(e)&bucketElement != 0 {
			if err := c.bucket(p, value, depth); err != nil {
				return err
			}
		}
	}
	return p.checkOrder(keys, from, to)
}

// bucket checks a bucket, which is the value of a leaf element: a header, and
// the page itself if the bucket is small.
func (c *checker) bucket(p page, value []byte, depth int) error {
	if len(value) < bucketHeaderSize {
		return fmt.Errorf("its %s has a bucket of %d bytes", p.name, len(value))
	}
	if root := order.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	if depth > maxDepth || len(value) < bucketHeaderSize+pageHeaderSize {
		return fmt.Errorf("its %s has a damaged bucket", p.name)
	}
	inline := parsePage(p.name, value[bucketHeaderSize:])
	if inline.flags != leafPage {
		return fmt.Errorf("its %s has a damaged bucket", p.name)
	}
	return c.leaf(inline, nil, nil, depth+1)
}

// freelist checks that no free page is in use.
func (c *checker) freelist(id uint64) error {
	p, err := c.read(id)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return fmt.Errorf("its %s is not the free list", p.name)
	}
	ids, count := p.data[pageHeaderSize:], uint64(p.count)
	if p.count == 0xFFFF {
		// Too many for the header: the first number is the count.
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return fmt.Errorf("its %s has no room for %d free pages", p.name, count)
	}
	for i := range count {
		if err := c.claim(order.Uint64(ids[i*8:])); err != nil {
			return err
		}
	}
	return nil
}

// checkTable makes sure that element may be called for all elements.
func (p page) checkTable() error {
	if pageHeaderSize+p.count*elementSize > len(p.data) {
		return fmt.Errorf("its %s has no room for %d elements", p.name, p.count)
	}
	return nil
}

func (p page) element(i int) []byte {
	return p.data[pageHeaderSize+i*elementSize:][:elementSize]
}

// slice returns size bytes that begin skip bytes after a position, which
// counts from the element's own place in the table.
func (p page) slice(i int, pos, skip, size uint32) ([]byte, error) {
	begin := uint64(pageHeaderSize+i*elementSize) + uint64(pos) + uint64(skip)
	end := begin + uint64(size)
	if begin < uint64(pageHeaderSize+p.count*elementSize) || end > uint64(len(p.data)) {
		return nil, fmt.Errorf("its %s has an element outside of the page", p.name)
	}
	return p.data[begin:end], nil
}

func (p page) checkOrder(keys [][]byte, from, to []byte) error {
	for i, key := range keys {
		ordered := i > 0 && bytes.Compare(keys[i-1], key) < 0 ||
			i == 0 && (from == nil || bytes.Compare(from, key) <= 0)
		if !ordered || to != nil && bytes.Compare(key, to) >= 0 {
			return fmt.Errorf("its %s has keys out of order", p.name)
		}
	}
	return nil
}
