package content

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Held are files that a process has open, so that removing them makes no room. The zero value is none.
type Held struct{ files []*os.File }

// Open opens all regular files below a directory, also where their paths are longer than the kernel takes. What is not
// there any more is left out, and so is what is mounted there from another file system: it could not be unmounted.
func (h *Held) Open(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	on, err := device(root)
	if err != nil {
		return err
	}
	return h.open(root, on)
}

// device is the file system that a directory is on.
func device(dir *os.Root) (uint64, error) {
	info, err := dir.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Dev, nil
}

// open opens those below a directory that are on one file system. An [fs.FS] has no names that are not UTF-8.
func (h *Held) open(dir *os.Root, on uint64) error {
	if is, err := device(dir); err != nil || is != on {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := h.openEntry(dir, entry, on); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (h *Held) openEntry(dir *os.Root, entry fs.DirEntry, on uint64) error {
	switch {
	case entry.IsDir():
		below, err := dir.OpenRoot(entry.Name())
		if err != nil {
			return err
		}
		return errors.Join(h.open(below, on), below.Close())
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
