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
	return h.open(root)
}

// open opens those below a directory. An [fs.FS] has no names that are not UTF-8.
func (h *Held) open(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := h.openEntry(dir, entry); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (h *Held) openEntry(dir *os.Root, entry fs.DirEntry) error {
	switch {
	case entry.IsDir():
		below, err := dir.OpenRoot(entry.Name())
		if err != nil {
			return err
		}
		return errors.Join(h.open(below), below.Close())
	case entry.Type().IsRegular():
		f, err := dir.Open(entry.Name())
		if err == nil {
			h.files = append(h.files, f)
		}
		return err
	}
	return nil
}

// Close closes them.
func (h *Held) Close() (err error) {
	for _, f := range h.files {
		err = errors.Join(err, f.Close())
	}
	h.files = nil
	return err
}
