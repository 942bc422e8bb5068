package archived

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/api"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/asked"
)

// mostTexts bounds the texts of a page, in bytes, as on a node.
const mostTexts = 1 << 20

// errNoEntry: a path leads nowhere.
var errNoEntry = fmt.Errorf("%w; list the directory above to see what is there", fs.ErrNotExist)

// pathError says what a path leads to that it should not. Its words are those of a node.
type pathError struct {
	cause        api.CauseReason
	what, advice string
}

func (e *pathError) Error() string { return e.what + e.advice }

var (
	errNotRegular   = &pathError{api.NotRegularFile, "not a regular file", ", and only regular files are read"}
	errIsDirectory  = &pathError{api.IsDirectory, "is a directory", "; list it, or read it with archive=tar"}
	errNotDirectory = &pathError{api.NotDirectory, "not a directory", "; describe it with stat=true"}
	errSymlink      = &pathError{
		api.IsSymlink, "is a symbolic link, which is not followed", "; ask for the path that it points to, if that is in the volume",
	}
	errMount = &pathError{
		api.CrossesMount, "is a mount point, which is not entered", ", so what is there does not belong to the volume",
	}
)

// at adds a path to an error.
func at(p paths.Path, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Quote(), err)
}

// enterable returns why an entry cannot be entered, or nil for a directory.
func enterable(e form.Entry) error {
	switch e.Type {
	case api.Directory:
		return nil
	case api.Symlink:
		return errSymlink
	case api.Mount:
		return errMount
	}
	return errNotDirectory
}

// readable returns why an entry cannot be read, or nil for a regular file.
func readable(e form.Entry) error {
	switch e.Type {
	case api.File:
		return nil
	case api.Directory:
		return errIsDirectory
	case api.Symlink:
		return errSymlink
	case api.Mount:
		return errMount
	}
	return errNotRegular
}

// list returns a page of a directory, sorted as one of a node.
func (x *index) list(ctx context.Context, p paths.Path, q api.FilesQuery) (api.FileList, error) {
	list := api.FileList{Path: p.Ref(), Entries: []api.Entry{}}
	after, err := paths.ParseRef(q.Continue)
	if err != nil || strings.Contains(q.Continue, ";") {
		return list, asked.Bad(api.BadContinue, "continue",
			"continue=%.300q is not a value that continues this list; begin the list anew", q.Continue)
	}
	l := &listing{below: p.String(), after: after.String(), depth: q.Depth, limit: q.Limit, way: on{path: p}}
	if err := x.each(ctx, l.see); err != nil {
		return list, err
	}
	if !p.IsTop() {
		e, err := l.way.end()
		if err == nil {
			err = at(p, enterable(e))
		}
		if err != nil {
			return list, err
		}
	}
	l.page(&list)
	return list, nil
}

// listing collects the first entries of a directory behind a place: no more than a page has.
type listing struct {
	// below is the directory, and after the place in it.
	below, after string
	depth, limit int
	way          on
	// first are those with the least names, the greatest first, and texts how long their texts are. more: there are others.
	first entries
	texts int
	more  bool
}

// see looks at an entry.
func (l *listing) see(e *form.Entry) error {
	if l.way.found == nil && !l.way.path.IsTop() {
		if err := l.way.see(e); l.way.before != nil {
			return err
		}
	}
	name := e.Name
	if l.below != "" {
		below, ok := strings.CutPrefix(e.Name, l.below+"/")
		if !ok {
			return nil
		}
		name = below
	}
	if strings.Count(name, "/") >= l.depth {
		return nil
	}
	if l.after != "" && compareNames(name, l.after) <= 0 {
		return nil
	}
	kept := *e
	kept.Extents = nil // of a hostile index they take more memory than all that is shown
	heap.Push(&l.first, inside{name, kept})
	l.texts += textsOf(kept)
	for len(l.first) > l.limit || l.texts > mostTexts && len(l.first) > 1 {
		l.texts -= textsOf(heap.Pop(&l.first).(inside).entry)
		l.more = true
	}
	return nil
}

func textsOf(e form.Entry) int { return len(e.Name) + len(e.Link) }

// inside is an entry with its name in the directory.
type inside struct {
	name  string
	entry form.Entry
}

// entries are a heap, the greatest name first.
type entries []inside

func (e entries) Len() int           { return len(e) }
func (e entries) Less(i, j int) bool { return compareNames(e[i].name, e[j].name) > 0 }
func (e entries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)        { *e = append(*e, x.(inside)) }

func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = inside{}
	*e = (*e)[:len(*e)-1]
	return last
}

// compareNames compares element by element: a directory comes before what is in it, and that before the next name.
func compareNames(a, b string) int {
	for {
		first, restA, moreA := strings.Cut(a, "/")
		second, restB, moreB := strings.Cut(b, "/")
		if c := strings.Compare(first, second); c != 0 || !moreA && !moreB {
			return c
		}
		if c := cmp.Compare(btoi(moreA), btoi(moreB)); c != 0 {
			return c
		}
		a, b = restA, restB
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// page fills the list.
func (l *listing) page(list *api.FileList) {
	slices.SortFunc(l.first, func(a, b inside) int { return compareNames(a.name, b.name) })
	for _, n := range l.first {
		e := described(n.entry)
		if e.Type == api.Directory && strings.Count(n.name, "/")+1 == l.depth {
			list.Truncated = true
		}
		list.Entries = append(list.Entries, e)
	}
	if l.more {
		list.Continue = paths.Path{}.Join(l.first[len(l.first)-1].name).Ref()
	}
}

// described describes an entry in the words of the API.
func described(e form.Entry) api.Entry {
	whole := paths.Path{}
	if e.Name != "" {
		whole = whole.Join(e.Name)
	}
	name, ref := strings.ToValidUTF8(whole.Base(), "\ufffd"), whole.Ref()
	if e.Type == api.Mount {
		return api.Entry{Name: name, Ref: ref, Type: api.Mount}
	}
	described := api.Entry{
		Name: name, Ref: ref, Type: e.Type, Size: e.Size, Allocated: e.Allocated, Mode: fmt.Sprintf("%04o", e.Mode),
		UID: e.UID, GID: e.GID, ModTime: asked.InYears(e.ModTime), Links: e.Links,
	}
	if e.Type == api.Symlink {
		described.Target = strings.ToValidUTF8(e.Link, "\ufffd")
	}
	return described
}
