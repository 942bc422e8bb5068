package store

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
	"github.com/katbox/katbox/internal/store/boltfile"
)

// unsettled is what may be in the page cache alone. Nothing may be built on it.
//
// bbolt makes a commit durable in two steps: it writes and syncs the pages, then the
// meta page that refers to them. If the second sync fails, or the process is killed
// before it, a reader sees the new meta page and the disk may still have the one
// before. The next commit takes the pages that the new meta page no longer needs. On
// disk they are still in use, and a power cut in that commit would leave a damaged
// file. A later sync that succeeds proves nothing: after an error the kernel takes a
// page for clean and does not write it again.
type unsettled struct {
	// meta is the newest meta page, which has its place at an offset.
	meta []byte
	at   int64
	// dir may not know the file by its name; nil if it does. It is the directory that
	// the name was given in, whatever is mounted there by now.
	dir *os.File
	// replaced had the name before, and is released once dir knows; or nil.
	replaced *database
}

// unsettle notes that the newest meta page may not be on disk.
func (d *database) unsettle() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	m, err := boltfile.Newest(d.file, info.Size())
	if err != nil {
		return d.advice.damagedError(d.path, err)
	}
	page := make([]byte, m.PageSize)
	if _, err := d.file.ReadAt(page, m.At); err != nil {
		return fmt.Errorf("read %s: %w", d.path, err)
	}
	d.unsettled.meta, d.unsettled.at = page, m.At
	return nil
}

// settle makes durable what is unsettled: it writes the same bytes again, so that
// the kernel has to write them, too.
func (d *database) settle() error {
	if d.unsettled.meta != nil {
		err := crashpoint.Around("store/settle", func() error {
			if _, err := d.file.WriteAt(d.unsettled.meta, d.unsettled.at); err != nil {
				return err
			}
			return d.sync(int(d.file.Fd()))
		})
		if err != nil {
			return fmt.Errorf("make the last commit of %s durable: %w", d.path, err)
		}
		d.unsettled.meta = nil
	}
	if d.unsettled.dir != nil {
		if err := d.unsettled.dir.Sync(); err != nil {
			return fmt.Errorf("make the name of %s durable: %w", d.path, err)
		}
		_ = d.unsettled.dir.Close() // it was only read
		d.unsettled.dir = nil
	}
	if old := d.unsettled.replaced; old != nil {
		d.unsettled.replaced = nil
		if err := old.release(); err != nil {
			return fmt.Errorf("release the file that was %s: %w", d.path, err)
		}
	}
	return nil
}

// afterFailure looks whether a transaction that failed has come to its meta page; id
// is 0 if it did not begin. If not, nothing has changed. Else the commit is there for
// every reader: once it is durable, it has succeeded, and until then there is no
// further one.
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
	if err := d.settle(); err != nil {
		return fmt.Errorf("%w; no further commit before the disk takes this one", failed)
	}
	return nil
}

// fdatasync is the system call.
func fdatasync(fd int) error {
	for {
		if err := unix.Fdatasync(fd); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
