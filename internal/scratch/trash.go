package scratch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// TrashPage returns names of what is in the trash, in no order, for [Dir.Erase]. There
// may be a million, so they come in pages: at least atLeast names, if there are as many,
// and some hundred more at most. from is 0 for the first page, and next is where the
// next one begins, 0 after the last.
//
// What goes or comes between two pages may be in none of them. On a file system that
// counts names to find its place (tmpfs before Linux 6.6) that is so of others too: who
// wants all begins again at the end.
func (d *Dir) TrashPage(from int64, atLeast int) (page []string, next int64, err error) {
	err = d.readTrash(from, func(batch []string, end int64) bool {
		page, next = append(page, batch...), end
		return len(page) < atLeast
	})
	if err != nil {
		return nil, 0, err
	}
	return page, next, nil
}

// TrashSize returns how many entries there are in the trash.
func (d *Dir) TrashSize() (entries int, err error) {
	err = d.readTrash(0, func(batch []string, _ int64) bool {
		entries += len(batch)
		return true
	})
	return entries, err
}

// readTrash calls fn for batches of names, and where each ends, until fn returns false.
// The last batch is empty and ends at 0.
func (d *Dir) readTrash(from int64, fn func(batch []string, end int64) (more bool)) error {
	if err := d.readTrashFrom(from, fn); err != nil {
		return fmt.Errorf("read the trash of %s: %w", d.root, err)
	}
	return nil
}

func (d *Dir) readTrashFrom(from int64, fn func(batch []string, end int64) (more bool)) error {
	fd, err := reopen(d.trashFD())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Seek(fd, from, unix.SEEK_SET); err != nil {
		return err
	}
	reader := names{fd: fd, buf: newBuffer()}
	for {
		batch, err := reader.next()
		if err != nil {
			return err
		}
		end := int64(0)
		if len(batch) > 0 {
			if end, err = unix.Seek(fd, 0, unix.SEEK_CUR); err != nil {
				return err
			}
		}
		if more := fn(batch, end); !more || len(batch) == 0 {
			return nil
		}
	}
}
