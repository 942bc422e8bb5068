package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/volume"
)

// formatVersion is the format that this package writes; see the package comment.
const formatVersion = 1

var (
	volumesBucket = []byte("volumes")
	metaBucket    = []byte("meta")

	formatKey         = []byte("format")
	legacyImportedKey = []byte("legacyImported")
	timelineKey       = []byte("timeline")
	rebootedKey       = []byte("rebooted")
)

// Store is the records of all volumes of one working directory. Its methods
// may be called from several goroutines; they take turns.
type Store struct {
	mu      sync.Mutex
	db      *database
	reserve reserve
	clock   clock
	// timer notes the clocks when nothing else was written for long.
	timer *time.Timer
	// rebooted is what Rebooted tells, noted whether that is in the file.
	rebooted, noted bool
	closed          bool

	// compaction is the one that runs, or nil, and background waits for its end.
	compaction *compaction
	background sync.WaitGroup
	// wasted is how many pages were written since for a list of free pages.
	wasted int64
	// notBefore is when the next compaction may begin, pause after the one before.
	notBefore time.Time
	pause     time.Duration
	// report gets each compaction; last is the last one.
	report func(Compaction)
	last   *Compaction
}

// Damaged is a stored value that cannot be used. It stays in the file until a
// change for the same ID is committed.
type Damaged struct {
	ID     volume.ID
	Reason string
}

// Change is what is to be known of a volume from now on.
type Change = volume.Change

// Open opens the store at path and creates it if there is no such file; the
// directory must exist. It holds an exclusive lock until Close.
//
// The error is [ErrDamaged], [ErrLocked], [ErrNewer] or that of a system call,
// and tells what to do. An existing file was not changed then.
func Open(path string) (*Store, error) { return open(path, kernelClock()) }

func open(path string, c clock) (*Store, error) {
	if err := create(path); err != nil {
		return nil, err
	}
	db, err := openDatabase(path, os.O_RDWR, ownAdvice)
	if err != nil {
		return nil, err
	}
	db.removeUnfinished()
	if err := db.view(checkFormat(db)); err != nil {
		return nil, errors.Join(err, db.close())
	}
	var noted []byte
	var rebootNoted bool
	if err := db.view(func(tx *bbolt.Tx) error {
		noted = bytes.Clone(tx.Bucket(metaBucket).Get(timelineKey))
		rebootNoted = tx.Bucket(metaBucket).Get(rebootedKey) != nil
		return nil
	}); err != nil {
		return nil, errors.Join(err, db.close())
	}
	s := &Store{
		db:      db,
		reserve: newReserve(db.file),
		clock:   c.after(noted),
		pause:   compactionPause,
		noted:   rebootNoted,
	}
	s.rebooted = s.clock.rebooted || rebootNoted
	s.reserve.ahead()
	s.timer = time.AfterFunc(lookInterval, s.look)
	s.look()
	return s, nil
}

// checkFormat refuses a file that is not a store of a known format.
func checkFormat(db *database) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		m := tx.Bucket(metaBucket)
		if m == nil || tx.Bucket(volumesBucket) == nil {
			return db.advice.damagedError(db.path, errors.New("it is not a store of Katbox"))
		}
		format := string(m.Get(formatKey))
		n, err := strconv.Atoi(format)
		switch {
		case err != nil || n < 1:
			return db.advice.damagedError(db.path, fmt.Errorf("its format is %q", format))
		case n > formatVersion:
			return newerError(db.path, format)
		}
		return nil
	}
}

// Load calls each with the records of all volumes, in no order: there may be too
// many to have them in memory at once. The times in them carry a monotonic clock
// reading if now does, and none is after now; the package comment says why. Values
// that cannot be used are returned, because the others must not suffer from them.
// each must not call the store.
func (s *Store) Load(now time.Time, each func(volume.Record)) (damaged []Damaged, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.clock.reading(now)
	err = s.db.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(volumesBucket).ForEach(func(key, value []byte) error {
			r, err := decodeValue(key, value, m)
			if err != nil {
				damaged = append(damaged, Damaged{ID: volume.ID(key), Reason: err.Error()})
				return nil
			}
			outside(func() { each(r) })
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("load records: %w", err)
	}
	return damaged, nil
}

// Commit makes all changes durable in one transaction: all of them or none. Of
// several changes of one volume the last one counts. To forget a volume that
// is not known is fine. Without changes it writes all the same, the clocks, and
// so tells whether a commit is possible.
//
// [ErrInvalidRecord] names a record that was refused. With no room on the disk
// the error is [volume.ErrNoSpace] (and the system's ENOSPC or EDQUOT); the
// store stays usable and a later commit may succeed. After any other error it
// is not known whether the changes are there; if they are, the next commit first
// makes them durable, and fails if it cannot. After [ErrDamaged] every further
// call fails too.
func (s *Store) Commit(changes []Change) error {
	values := make([][]byte, len(changes))
	m := s.clock.writing()
	for i, c := range changes {
		if c.Record == nil {
			continue
		}
		if c.Record.ID != c.ID {
			return fmt.Errorf("%w: volume %q has a record of %q", ErrInvalidRecord, c.ID, c.Record.ID)
		}
		value, err := encodeValue(*c.Record, m)
		if err != nil {
			return fmt.Errorf("%w: volume %q: %w", ErrInvalidRecord, c.ID, err)
		}
		values[i] = value
	}
	return s.update(func(t transaction) error {
		for i, c := range changes {
			var err error
			if values[i] == nil {
				err = t.delete(volumesBucket, []byte(c.ID))
			} else {
				err = t.put(volumesBucket, []byte(c.ID), values[i])
			}
			if err != nil {
				return fmt.Errorf("volume %q: %w", c.ID, err)
			}
		}
		return nil
	})
}

// update runs one transaction and renews the reserve.
func (s *Store) update(fn func(transaction) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(fn)
}

// write is update with the lock held. It notes the clocks in each transaction,
// which costs no page more: the bucket is part of one that is written anyway.
func (s *Store) write(fn func(transaction) error) error {
	defer s.timer.Reset(lookInterval)
	look, ok := s.clock.look()
	change := func(tx *bbolt.Tx) error {
		t := transaction{tx: tx, compaction: s.compaction}
		if err := fn(t); err != nil || !ok {
			return err
		}
		if err := t.put(metaBucket, timelineKey, look); err != nil {
			return err
		}
		return s.noteReboot(t)
	}
	err := again(func() error { return s.db.update(change) }, func() error { return makeRoom(s.db.file) })
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	if ok {
		s.noted = s.rebooted
	}
	s.reserve.ahead()
	s.weigh()
	return nil
}

// look notes the clocks. A failure is no news that the next commit would not
// bring: that one notes them too.
func (s *Store) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	_ = s.write(nothing)
}

// nothing is a transaction that only notes the clocks.
func nothing(transaction) error { return nil }

// Close releases the file and its lock. A compaction that runs is given up.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.timer.Stop()
	s.mu.Unlock()
	s.background.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.close()
}
