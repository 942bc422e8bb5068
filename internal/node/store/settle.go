package store

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/store/boltfile"
)

// unsettled is what only the page cache may have. Nothing may be built on it.
//
// bbolt makes a commit durable in two steps: it writes and syncs the pages, and then the meta page
// that refers to them. If the second sync fails, or the process is killed before it, readers see
// the new meta page and the disk may have the old one. The next commit overwrites the pages that
// only the old one needs, and a power cut during that commit would leave a damaged file. A later
// sync that succeeds proves nothing: after an error the kernel takes a page for clean and does not
// write it again.
type unsettled struct {
	meta     []byte    // the newest meta page
	at       int64     // its offset in the file
	dir      *os.File  // where the file got its name, while that may not be on disk; or nil
	replaced *database // had the name before, and is released once that is on disk; or nil
}

// unsettle notes that the newest meta page may not be on disk.
func (d *database) unsettle() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	m, err := boltfile.Newest(d.file, info.Size())
	if err != nil {
		return damagedError(d.path, err)
	}
	page := make([]byte, m.PageSize)
	if _, err := d.file.ReadAt(page, m.At); err != nil {
		return fmt.Errorf("read %s: %w", d.path, err)
	}
	d.unsettled.meta, d.unsettled.at = page, m.At
	return nil
}

// settle makes durable what is unsettled. It writes the meta page again, so that the kernel has to.
func (d *database) settle() error {
	u := &d.unsettled
	if u.meta != nil {
		err := kernel.WriteAt(d.file, u.meta, u.at)
		if err == nil {
			err = kernel.Fdatasync(int(d.file.Fd()))
		}
		if err != nil {
			return fmt.Errorf("make the last commit of %s durable: %w", d.path, err)
		}
		u.meta = nil
	}
	if u.dir != nil {
		if err := kernel.Sync(u.dir); err != nil {
			return fmt.Errorf("make the name of %s durable: %w", d.path, err)
		}
		_ = u.dir.Close() // it was only read
		u.dir = nil
	}
	if old := u.replaced; old != nil {
		u.replaced = nil
		if err := old.release(); err != nil {
			return fmt.Errorf("release the file that was %s: %w", d.path, err)
		}
	}
	return nil
}

// afterFailure decides what a failed transaction did; id is 0 if it did not begin. If it did not
// reach its meta page, nothing has changed. Else readers see the commit: once it is durable it has
// succeeded, and until then no other commit runs.
func (d *database) afterFailure(id int, failed error) error {
	if id == 0 {
		return failed
	}
	newest := 0
	err := d.bolt.View(func(tx *bbolt.Tx) error { newest = tx.ID(); return nil })
	if err != nil || newest < id {
		return errors.Join(failed, err)
	}
	if err := d.unsettle(); err != nil {
		return errors.Join(failed, err)
	}
	if d.settle() != nil {
		return fmt.Errorf("%w; no further commit before the disk takes this one", failed)
	}
	return nil
}
