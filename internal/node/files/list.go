package files

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/node/beneath"
)

const (
	// maxPage bounds the texts of a page, in bytes: paths and targets may be long.
	maxPage = 1 << 20
	// scanSize is how many bytes of names one read of a directory takes: some thousand names.
	scanSize = 256 << 10
	// maxSorted is how many names a directory may have to be listed in their order: they are all read for
	// each page.
	maxSorted = 20_000
)

// ListOptions say which part of a directory a list contains.
type ListOptions struct {
	// After continues a list: it is the next of the page before. It is empty for the first page.
	After string
	// Limit is how many entries the page may hold, at least 1.
	Limit int
	// Depth is how many levels the list contains: 1 for the directory itself alone, at most 16.
	Depth int
}

// List returns a page of the directory at a path, sorted by the bytes of the names; with a Depth
// above 1 by those of the paths, element by element, so a directory comes before what is in it. A directory
// with more than 20,000 names comes in its own order instead, which stays the same while nothing changes.
//
// A page may hold fewer entries than its limit and not be the last: it ends early when its texts take 1 MiB. A name
// that vanishes meanwhile is left out; one that appears may or may not be in the list.
//
// A page costs what is asked for: it looks at the entries that it returns, and reads the names of those, and up to
// 20,000 of each directory on the way to them.
func (t *Tree) List(ctx context.Context, p paths.Path, o ListOptions, pace Pace) (page Page, err error) {
	o.Limit, o.Depth = max(o.Limit, 1), min(max(o.Depth, 1), 16)
	after, ok := parseWay(o.After)
	if !ok || len(after) > o.Depth {
		return Page{}, at(p, ErrBadContinue)
	}
	fd, e, err := t.look(p)
	if err == nil {
		defer closeHandle(fd)
		if err = enterable(e); err != nil {
			err = at(p, err)
		}
	}
	if err != nil {
		return Page{}, err
	}
	l := &list{tree: t, ctx: ctx, pace: pace, limit: o.Limit, buf: make([]byte, scanSize)}
	if err := l.directory(fd, p, make([]step, 0, o.Depth), after, o.Depth); err != nil && !errors.Is(err, errFull) {
		return Page{}, err
	}
	return l.page, nil
}

// Page is a part of a list.
type Page struct {
	Entries []Entry
	// Next continues the list; it is empty on the last page.
	Next string
	// Truncated: it has a directory that was not entered because of the depth.
	Truncated bool
	// Own: it has names of a directory that comes in its own order.
	Own bool
}

var (
	// errFull ends a list whose page is full.
	errFull = errors.New("the page is full")
	// errLarge: a directory has more names than are sorted.
	errLarge = errors.New("the directory has very many names")
)

// list is one call of List.
type list struct {
	tree  *Tree
	ctx   context.Context
	pace  Pace
	limit int
	// buf is for reading names.
	buf []byte

	page Page
	// size is what the texts of the page take, and looked how many names were looked at.
	size, looked int
	// last is the way to the last entry.
	last []step
}

// directory lists what the handle fd stands for, from behind after. p is its path, way the way to it.
func (l *list) directory(fd int, p paths.Path, way, after []step, depth int) error {
	opened, err := beneath.ReopenUnnoticed(fd)
	if err != nil {
		return at(p, err)
	}
	defer unix.Close(opened)
	from := ""
	if len(after) > 0 {
		if depth > 1 { // what is in it may follow
			if err := l.name(opened, p, append(way, after[0]), true, after[1:], depth); err != nil {
				return err
			}
		}
		if after[0].position != sorted {
			return l.ownOrder(opened, p, way, after[0].position, depth)
		}
		from = after[0].name
	}
	err = l.sorted(opened, p, way, from, depth)
	switch {
	case !errors.Is(err, errLarge):
		return err
	case len(after) > 0:
		return at(p, ErrBadContinue) // an earlier version sorted it
	}
	return l.ownOrder(opened, p, way, 0, depth)
}

// sorted lists an open directory in the order of its names, from behind a name on. The error is errLarge, before
// anything is listed, if there are too many.
func (l *list) sorted(opened int, p paths.Path, way []step, from string, depth int) error {
	for more := true; more; {
		// One more reports whether there is a next page.
		var names []string
		var err error
		names, more, err = l.smallest(opened, from, l.limit-len(l.page.Entries)+1)
		if errors.Is(err, errLarge) {
			return err
		}
		if err != nil {
			return at(p, err)
		}
		for _, name := range names {
			if err := l.name(opened, p, append(way, step{name, sorted}), false, nil, depth); err != nil {
				return err
			}
			from = name
		}
	}
	return nil
}

// ownOrder lists an open directory in its own order, from a position on.
func (l *list) ownOrder(opened int, p paths.Path, way []step, position int64, depth int) error {
	l.page.Own = true
	err := beneath.Seek(opened, position)
	if errors.Is(err, unix.EINVAL) {
		err = ErrBadContinue
	}
	if err != nil {
		return at(p, err)
	}
	for {
		if err := l.pace.Wait(l.ctx); err != nil {
			return err
		}
		// What is read beyond the page is read again for the next one.
		wanted := min(scanSize, max(minScan, (l.limit-len(l.page.Entries)+1)*perName))
		size, err := beneath.Getdents(opened, l.buf[:wanted])
		if err != nil {
			return at(p, err)
		}
		if size <= 0 {
			return nil
		}
		var steps []step // the buffer is for the directories in this one, too
		for r := range beneath.Records(l.buf[:size]) {
			steps = append(steps, step{string(r.Name), r.Next})
		}
		for _, s := range steps {
			if err := l.name(opened, p, append(way, s), false, nil, depth); err != nil {
				return err
			}
		}
	}
}

const (
	// minScan is how many bytes of names are read at least, and perName about what a name takes.
	minScan = 4 << 10
	perName = 64
)

// name lists the name that a way ends with, in the open directory dir, whose path is p; unless a page before has
// it. It lists what is in it from behind after.
func (l *list) name(dir int, p paths.Path, way []step, listed bool, after []step, depth int) error {
	if !listed && l.full() {
		l.page.Next = ref(l.last)
		return errFull
	}
	if l.looked++; l.looked%paceEvery == 0 {
		if err := l.pace.Wait(l.ctx); err != nil {
			return err
		}
	}
	p = p.Join(way[len(way)-1].name)
	fd, e, err := l.tree.lookAt(dir, p)
	if errors.Is(err, unix.ENOENT) || listed && errors.Is(err, unix.ENAMETOOLONG) {
		return nil
	}
	if err != nil {
		return at(p, err)
	}
	defer closeHandle(fd)
	if !listed {
		l.page.Entries, l.last = append(l.page.Entries, e), append(l.last[:0], way...)
		l.size += len(p.String()) + len(e.Target)
	}
	if e.Type != Directory {
		return nil
	}
	if depth == 1 {
		l.page.Truncated = true
		return nil
	}
	return l.directory(fd, p, way, after, depth-1)
}

func (l *list) full() bool {
	return len(l.page.Entries) >= l.limit || len(l.page.Entries) > 0 && l.size >= maxPage
}

// smallest returns the first names in an open directory behind a name, sorted, and reports whether
// there are more than count. It keeps at most twice as many.
func (l *list) smallest(fd int, from string, count int) (names []string, more bool, err error) {
	if err := beneath.Seek(fd, 0); err != nil {
		return nil, false, err
	}
	cut := func() {
		slices.Sort(names)
		// A directory that changes may show a name twice.
		if names = slices.Compact(names); len(names) > count {
			names, more = names[:count], true
		}
	}
	for seen := 0; ; {
		if err := l.pace.Wait(l.ctx); err != nil {
			return nil, false, err
		}
		size, err := beneath.Getdents(fd, l.buf)
		if err != nil {
			return nil, false, err
		}
		for r := range beneath.Records(l.buf[:size]) {
			if seen++; seen > maxSorted {
				return nil, false, errLarge
			}
			// Once names were cut off, the last one that is left bounds all others.
			if from != "" && string(r.Name) <= from || more && string(r.Name) > names[count-1] {
				continue
			}
			names = append(names, string(r.Name))
			if len(names) >= 2*count {
				cut()
			}
		}
		if size <= 0 {
			cut()
			return names, more, nil
		}
	}
}
