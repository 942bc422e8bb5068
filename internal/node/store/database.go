package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/store/boltfile"
)

const (
	// pairsTogether is how many pairs are read together at most, about 1 MiB.
	pairsTogether = 4096
	// readTime is how long that takes at most, about as long as a commit.
	readTime = 2 * time.Millisecond
)

// database is a bbolt database that cannot end the process. bbolt maps its file into memory and
// trusts it: damage makes it panic, loop, or touch memory that is not there. So the file is checked
// before bbolt opens it, and what still goes wrong becomes an error.
type database struct {
	path      string
	file      *os.File
	bolt      *bbolt.DB
	unsettled unsettled
	reserve   reserve
	// commit runs one transaction. Tests make it fail where kernel.Inject does not reach: inside of
	// bbolt, after the transaction.
	commit func(fn func(*bbolt.Tx) error) error
	// failed is set once bbolt panicked: it may hold its locks for ever, so it is not called again.
	failed error
}

// pair is a key with its value; nil if there is none.
type pair struct {
	bucket, key, value []byte
}

func newDatabase(path string, file *os.File) *database {
	d := &database{path: path, file: file, reserve: newReserve(file)}
	d.commit = func(fn func(*bbolt.Tx) error) error { return kernel.Update(d.bolt, fn) }
	return d
}

// openDatabase opens a database, and never creates one. Several processes may open a file read-only
// (os.O_RDONLY) at a time.
func openDatabase(path string, flag int, by owner) (*database, error) {
	file, err := openLocked(path, flag, by)
	if err != nil {
		return nil, err
	}
	d := newDatabase(path, file)
	if err := d.check(); err != nil {
		return nil, errors.Join(damagedError(path, err), d.file.Close())
	}
	if err := d.openBolt(flag == os.O_RDONLY); err != nil {
		return nil, err
	}
	// A compaction gives the name to another file, and must not replace a link.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		d.path = target
	}
	// The last process may have ended before a sync, or after one that failed.
	err = d.unsettle()
	if err == nil {
		d.unsettled.dir, err = os.Open(filepath.Dir(d.path))
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// openLocked opens and locks the file that has the name.
func openLocked(path string, flag int, by owner) (*os.File, error) {
	for {
		file, err := openRegular(os.Stat, kernel.Open, path, flag)
		if errors.Is(err, errNotRegular) {
			return nil, damagedError(path, err)
		}
		if err != nil {
			return nil, err
		}
		if err := lock(file, flag == os.O_RDONLY, by); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if hasName(os.Stat, path, file) == nil {
			return file, nil
		}
		// While it waited for the lock, a compaction gave the name to a copy.
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// check reads the whole file and returns what is wrong with it.
func (d *database) check() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	// After a reboot no part of the file is in memory. The check reads pages in the order of the
	// trees, and a disk is many times faster in its own order. This is only a hint.
	_ = unix.Fadvise(int(d.file.Fd()), 0, info.Size(), unix.FADV_WILLNEED)
	return boltfile.Check(d.file, info.Size())
}

// openBolt gives the locked file to bbolt, which makes an empty one a database. On an error the
// file is closed.
func (d *database) openBolt(readOnly bool) error {
	err := d.guard(func() (err error) {
		d.bolt, err = bbolt.Open(d.path, 0, &bbolt.Options{
			// The file that was locked and checked, even if it has lost its name since.
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return d.file, nil },
			ReadOnly: readOnly,
			// The lock is ours, so bbolt gets it at once. Without a timeout it would wait for ever
			// if it did not.
			Timeout: lockTimeout,
			// With the other type, an array, an allocation takes time in proportion to the number
			// of free pages. Evicting 100,000 volumes frees thousands of pages.
			FreelistType: bbolt.FreelistMapType,
			// Off on purpose. NoSync: a successful reply is durable. NoGrowSync: ext4 may lose the
			// growth of the file. NoFreelistSync: each start and each failed commit would find the
			// free pages by a walk over all records, in a goroutine of bbolt where no fault can be
			// caught. A compaction keeps the list of free pages short instead.
		})
		return err
	})
	if err == nil {
		return nil
	}
	// bbolt closes the file when it returns an error, and not when it panics.
	d.abandon()
	var errno unix.Errno
	switch {
	case errors.Is(err, ErrDamaged):
		return err
	case errors.As(err, &errno):
		// The system refused something: memory to map the file, or room to create it.
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	return damagedError(d.path, err)
}

// guard runs fn, which calls bbolt, and turns a panic into an error, or a fault when it touches the
// mapped file (the file was truncated, or the disk cannot read it). The database is unusable
// afterwards. fn calls nothing of the store's callers: their panic says nothing about the file.
func (d *database) guard(fn func() error) (err error) {
	if d.failed != nil {
		return d.failed
	}
	// The setting is per goroutine, and fn stays on this one.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			d.failed = damagedError(d.path, fmt.Errorf("%v", r))
			err = d.failed
		}
	}()
	return fn()
}

func (d *database) view(fn func(*bbolt.Tx) error) error {
	return d.guard(func() error { return d.bolt.View(fn) })
}

// each calls fn with the pairs of a bucket that follow a key, or its first ones: one, and as many
// more as pairsTogether and readTime allow. It returns the last key, or nil if there are no more.
// fn runs within guard.
func (d *database) each(bucket, after []byte, fn func(key, value []byte)) (last []byte, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		began := time.Now()
		cursor := tx.Bucket(bucket).Cursor()
		key, value := cursor.Seek(after)
		if after != nil && bytes.Equal(key, after) {
			key, value = cursor.Next()
		}
		for n := 1; key != nil; n++ {
			fn(key, value)
			last = key
			if n == pairsTogether || time.Since(began) > readTime {
				break
			}
			key, value = cursor.Next()
		}
		last = bytes.Clone(last)
		return nil
	})
	return last, err
}

// update runs one transaction. When it returns nil, the transaction is on disk.
func (d *database) update(fn func(*bbolt.Tx) error) error {
	return d.guard(func() error {
		if err := d.settle(); err != nil {
			return err
		}
		id := 0
		err := d.commit(func(tx *bbolt.Tx) error { id = tx.ID(); return fn(tx) })
		if err != nil {
			return d.afterFailure(id, err)
		}
		return nil
	})
}

// close releases the file.
func (d *database) close() (err error) {
	if d.unsettled.dir != nil {
		_ = d.unsettled.dir.Close() // it was only read
		d.unsettled.dir = nil
	}
	if old := d.unsettled.replaced; old != nil {
		// It is not emptied: the disk may still need it.
		d.unsettled.replaced = nil
		defer func() { err = errors.Join(err, old.close()) }()
	}
	if d.failed != nil {
		d.abandon()
		return nil
	}
	if err := d.guard(d.bolt.Close); err != nil {
		return fmt.Errorf("close %s: %w", d.path, err)
	}
	return nil
}

// abandon releases the file without bbolt. The memory map stays and keeps the file open, so the
// lock is given back explicitly. An error means that the file is closed already.
func (d *database) abandon() {
	_ = unix.Flock(int(d.file.Fd()), unix.LOCK_UN)
	_ = d.file.Close()
}
