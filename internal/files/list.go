package files

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/beneath"
	"github.com/katbox/katbox/internal/paths"
)

const (
	// maxPage bounds the memory of a page, in bytes: names and targets may be long.
	maxPage = 4 << 20
	// scanSize is how many bytes of names one read of a directory takes: some thousand names.
	scanSize = 256 << 10
	// entrySize is what an entry takes besides its names.
	entrySize = 256
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
// above 1 by those of the paths, element by element, so a directory comes before what is in it.
//
// next continues the list, and is empty on the last page. A page may hold fewer entries than its
// limit and not be the last: it ends early when its names take 4 MiB. truncated says that the page
// has a directory that was not entered because of Depth. A name that vanishes meanwhile is left out;
// one that appears may or may not be in the list.
//
// Each page reads the names of the whole directory, and keeps those of the page.
func (t *Tree) List(ctx context.Context, p paths.Path, o ListOptions, pace Pace) (entries []Entry, next string, truncated bool, err error) {
	o.Limit, o.Depth = max(o.Limit, 1), min(max(o.Depth, 1), 16)
	after, err := paths.ParseRef(o.After)
	if err != nil || o.After != "" && after.IsTop() || len(after.Elements()) > o.Depth {
		return nil, "", false, at(p, ErrBadContinue)
	}
	fd, e, err := t.look(p)
	if err == nil {
		defer closeHandle(fd)
		if err = enterable(e); err != nil {
			err = at(p, err)
		}
	}
	if err != nil {
		return nil, "", false, err
	}
	l := &list{tree: t, ctx: ctx, pace: pace, limit: o.Limit, buf: make([]byte, scanSize)}
	if err := l.directory(fd, p, paths.Path{}, after.Elements(), o.Depth); err != nil && !errors.Is(err, errFull) {
		return nil, "", false, err
	}
	return l.entries, l.next, l.truncated, nil
}

// errFull ends a list whose page is full.
var errFull = errors.New("the page is full")

// list is one call of List.
type list struct {
	tree  *Tree
	ctx   context.Context
	pace  Pace
	limit int
	// buf is for reading names.
	buf []byte

	entries   []Entry
	size      int
	looked    int
	last      paths.Path // of entries, relative to the directory of the list
	next      string
	truncated bool
}

// directory lists what the handle fd stands for, from behind after. p is its path, below its path in
// the list.
func (l *list) directory(fd int, p, below paths.Path, after []string, depth int) error {
	opened, err := beneath.ReopenUnnoticed(fd)
	if err != nil {
		return at(p, err)
	}
	defer unix.Close(opened)
	from := bound{}
	if len(after) > 0 {
		// What is in it may follow.
		from = bound{name: after[0], inclusive: depth > 1}
	}
	for more := true; more; {
		var names []string
		// One more tells whether there is a next page; one has been listed before.
		names, more, err = l.smallest(opened, from, l.limit-len(l.entries)+2)
		if err != nil {
			return at(p, err)
		}
		for _, name := range names {
			if from.inclusive && name == from.name {
				err = l.name(opened, p.Join(name), below.Join(name), true, after[1:], depth)
			} else {
				err = l.name(opened, p.Join(name), below.Join(name), false, nil, depth)
			}
			if err != nil {
				return err
			}
			from = bound{name: name}
		}
	}
	return nil
}

// name lists one name in the directory dir, unless a page before has it, and what is in it from
// behind after.
func (l *list) name(dir int, p, below paths.Path, listed bool, after []string, depth int) error {
	if !listed && l.full() {
		l.next = l.last.Ref()
		return errFull
	}
	if l.looked++; l.looked%paceEvery == 0 {
		if err := l.pace.Wait(l.ctx); err != nil {
			return err
		}
	}
	fd, e, err := l.tree.lookAt(dir, p)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return at(p, err)
	}
	defer closeHandle(fd)
	if !listed {
		l.entries, l.last = append(l.entries, e), below
		l.size += entrySize + len(p.String()) + len(e.Target)
	}
	if e.Type != Directory {
		return nil
	}
	if depth == 1 {
		l.truncated = true
		return nil
	}
	return l.directory(fd, p, below, after, depth-1)
}

func (l *list) full() bool {
	return len(l.entries) >= l.limit || len(l.entries) > 0 && l.size >= maxPage
}

// bound is where a part of a directory begins: behind a name, or with it.
type bound struct {
	name      string
	inclusive bool
}

func (b bound) admits(name []byte) bool {
	return string(name) > b.name || b.inclusive && string(name) == b.name
}

// smallest returns the first names in an open directory from a bound on, sorted, and tells whether
// there are more than count. It keeps at most twice as many.
func (l *list) smallest(fd int, from bound, count int) (names []string, more bool, err error) {
	if err := beneath.Rewind(fd); err != nil {
		return nil, false, err
	}
	cut := func() {
		slices.Sort(names)
		// A directory that changes may show a name twice.
		if names = slices.Compact(names); len(names) > count {
			names, more = names[:count], true
		}
	}
	for {
		if err := l.pace.Wait(l.ctx); err != nil {
			return nil, false, err
		}
		size, err := beneath.Getdents(fd, l.buf)
		if err != nil {
			return nil, false, err
		}
		for r := range beneath.Records(l.buf[:size]) {
			// Once names were cut off, the last one that is left bounds all others.
			if !from.admits(r.Name) || more && string(r.Name) > names[count-1] {
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
