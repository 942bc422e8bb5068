package content

import (
	"errors"
	"io/fs"
	"os"
)

// Held are files that a process has open, so that removing them makes no room. The zero value is none.
type Held struct{ files []*os.File }

// Open opens all regular files below a directory, also where their paths are longer than the kernel takes. What is not
// there any more is left out.
func (h *Held) Open(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !entry.Type().IsRegular():
			return err
		}
		f, err := root.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			h.files = append(h.files, f)
		}
		return err
	})
}

// Close closes them.
func (h *Held) Close() (err error) {
	for _, f := range h.files {
		err = errors.Join(err, f.Close())
	}
	h.files = nil
	return err
}
