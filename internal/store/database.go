package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
	"github.com/katbox/katbox/internal/store/boltfile"
)

// lockTimeout is how long to wait for another process to let go of the file:
// long enough for a daemon that is just exiting.
var lockTimeout = 2 * time.Second

// lockRetry is the pause between two attempts to take the lock.
const lockRetry = 20 * time.Millisecond

// database is a bbolt database that cannot take the process down. bbolt maps
// its file into memory and trusts it: damage makes it panic, loop, or touch
// memory that is not there. So the file is checked before bbolt sees it, and
// what still goes wrong becomes an error.
type database struct {
	path   string
	advice advice
	file   *os.File
	bolt   *bbolt.DB
	// unsettled is what has to be made durable before the next commit.
	unsettled unsettled
	// commit runs one transaction and sync is fdatasync; tests make them fail.
	commit func(fn func(*bbolt.Tx) error) error
	sync   func(fd int) error
	// failed is set once bbolt panicked. Its locks may be held for ever then,
	// so it is not called again.
	failed error
}

// openDatabase opens an existing file that holds a database. It never creates
// one. For a file opened read-only (os.O_RDONLY), several processes may do so
// at a time.
func openDatabase(path string, flag int, a advice) (*database, error) {
	d, err := openLocked(path, flag, a)
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, errors.Join(a.damagedError(path, err), d.file.Close())
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
func openLocked(path string, flag int, a advice) (*database, error) {
	for {
		file, err := openRegular(path, flag)
		if errors.Is(err, errNotRegular) {
			return nil, a.damagedError(path, err)
		}
		if err != nil {
			return nil, err
		}
		if err := lock(file, flag == os.O_RDONLY, a); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if isNamed(file, path) {
			return newDatabase(path, file, a), nil
		}
		// While it waited for the lock, a compaction has given the name to a copy.
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// isNamed tells whether the name leads to the open file.
func isNamed(file *os.File, path string) bool {
	named, err := os.Stat(path)
	if err != nil {
		return false // and the next look says why
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(named, opened)
}

func newDatabase(path string, file *os.File, a advice) *database {
	d := &database{path: path, advice: a, file: file, sync: fdatasync}
	d.commit = func(fn func(*bbolt.Tx) error) error {
		return crashpoint.Around("store/commit", func() error { return d.bolt.Update(fn) })
	}
	return d
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
	// After a reboot nothing of it is in memory. The check reads pages as the trees
	// have them, one after the other, and a disk is many times faster in its own order.
	// It is but a hint, and so is its error.
	_ = unix.Fadvise(int(d.file.Fd()), 0, info.Size(), unix.FADV_WILLNEED)
	return boltfile.Check(d.file, info.Size())
}

// openBolt hands the locked file to bbolt, for which an empty one becomes a
// database. When it fails the file is closed.
func (d *database) openBolt(readOnly bool) error {
	err := d.guard(func() error {
		bolt, err := bbolt.Open(d.path, 0, &bbolt.Options{
			// The file is open already, and so is checked and locked: what is
			// opened is what was checked, even if the name was moved since.
			OpenFile: func(string, int, os.FileMode) (*os.File, error) { return d.file, nil },
			ReadOnly: readOnly,
			// The lock is ours, so bbolt gets it at once; without a timeout it
			// would wait for ever if it did not.
			Timeout: lockTimeout,
			// The other type, an array, takes time in proportion to the number of
			// free pages for each allocation. Evicting 100,000 volumes frees
			// thousands of pages.
			FreelistType: bbolt.FreelistMapType,
			// Left off on purpose. NoSync: a successful reply is durable.
			// NoGrowSync: ext4 may lose the growth of the file without it.
			// NoFreelistSync: every start, and every failed commit, would have to
			// find the free pages by walking all records, in a goroutine of
			// bbolt's where a fault cannot be caught. A compaction keeps the list
			// of free pages short instead.
		})
		d.bolt = bolt
		return err
	})
	if err == nil {
		return nil
	}
	// bbolt closes the file when it returns an error, but not when it panics.
	d.abandon()
	var errno unix.Errno
	switch {
	case errors.Is(err, ErrDamaged):
		return err
	case errors.As(err, &errno):
		// The system refused something: memory to map the file, room to create it.
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	return d.advice.damagedError(d.path, err)
}

// guard runs fn, which calls bbolt, and turns a panic, or a fault when
// touching the mapped file (it was truncated, or its disk cannot be read),
// into an error. After that the database is unusable.
func (d *database) guard(fn func() error) (err error) {
	if d.failed != nil {
		return d.failed
	}
	// The setting is per goroutine, and fn stays on this one.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if f, ok := r.(foreign); ok {
			panic(f.reason)
		}
		if r != nil {
			reason, ok := r.(error)
			if !ok {
				reason = fmt.Errorf("%v", r)
			}
			d.failed = d.advice.damagedError(d.path, reason)
			err = d.failed
		}
	}()
	return fn()
}

// foreign is a panic in a function of a caller, which says nothing of the file.
type foreign struct{ reason any }

// outside runs a function of a caller within guard.
func outside(fn func()) {
	defer func() {
		if reason := recover(); reason != nil {
			panic(foreign{reason})
		}
	}()
	fn()
}

func (d *database) view(fn func(*bbolt.Tx) error) error {
	return d.guard(func() error { return d.bolt.View(fn) })
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
		// The disk may still need it.
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

// abandon releases the file without bbolt's help. The memory mapping stays,
// and with it the open file, so the lock has to be given back explicitly.
// Errors do not matter: closed already is as good.
func (d *database) abandon() {
	_ = unix.Flock(int(d.file.Fd()), unix.LOCK_UN)
	_ = d.file.Close()
}

// lock takes the same lock on the file that bbolt uses.
func lock(file *os.File, shared bool, a advice) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	deadline := time.Now().Add(lockTimeout)
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		case !time.Now().Before(deadline):
			return a.lockedError(file.Name())
		}
		time.Sleep(lockRetry)
	}
}
