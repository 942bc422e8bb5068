package tarball

import (
	"io/fs"

	"github.com/katbox/katbox/internal/node/files"
)

// item is an entry that the archive contains, or has to skip.
type item struct {
	files.Entry
	// name is the entry's in the archive.
	name string
	open func() (*files.File, error)
	file *files.File // nil while it is not open
}

// opened returns the file, and opens it if it is not open.
func (i *item) opened() (_ *files.File, err error) {
	if i.file == nil {
		i.file, err = i.open()
	}
	return i.file, err
}

// close forgets the file.
func (i *item) close() {
	if i.file != nil {
		i.file.Close()
	}
}

// each calls fn for what the archive contains. An archive that is resumed opens only files whose
// content is needed, or that have holes, so nothing is opened ahead.
func (a *archiver) each(tree *files.Tree, fn func(*item) error) error {
	if a.Skip == 0 {
		return a.ahead(tree, fn)
	}
	return tree.Walk(a.ctx, a.Path, a.pace, func(e files.Entry, open func() (*files.File, error)) error {
		return a.visit(e, open, func(i *item) error {
			defer i.close()
			return fn(i)
		})
	})
}

// visit calls fn for an entry, unless it is excluded.
func (a *archiver) visit(e files.Entry, open func() (*files.File, error), fn func(*item) error) error {
	name, err := a.name(e)
	if err != nil || name == "" {
		return err
	}
	if !a.exclude.Match(name, e.Type == files.Directory) {
		return fn(&item{Entry: e, name: name, open: open})
	}
	if e.Type == files.Directory {
		return fs.SkipDir
	}
	return nil
}
