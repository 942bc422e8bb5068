package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/katbox/katbox/internal/model/volume"
)

// formatVersion is the format that this package writes; see the package comment.
const formatVersion = 2

func formatValue() []byte { return strconv.AppendInt(nil, formatVersion, 10) }

var (
	volumesBucket = []byte("volumes")
	metaBucket    = []byte("meta")
	goneBucket    = []byte("gone")

	formatKey         = []byte("format")
	legacyImportedKey = []byte("legacyImported")
	timelineKey       = []byte("timeline")
	rebootedKey       = []byte("rebooted")
	journalKey        = []byte("journal")
)

// Store is the records of all volumes of one working directory. Its methods may be called from
// several goroutines; they take turns.
type Store struct {
	mu              sync.Mutex
	db              *database
	clock           clock
	timer           *time.Timer // notes the clocks after lookInterval without a transaction
	rebooted, noted bool        // what Rebooted returns, and what the file says
	imported        bool        // whether the old driver's database was imported
	closed          bool
	ring            ring // the tombstones that are kept; see KeepTombstones
	journal         *journal
	journals        bool // StartJournal was called
	found           Found

	compaction *compaction    // the one that runs, or nil
	background sync.WaitGroup // waits for its end
	wasted     int64          // pages written for lists of free pages since the last one
	notBefore  time.Time      // when the next one may begin, pause after the last one
	pause      time.Duration
	report     func(Compaction) // is called with each one
	last       *Compaction
}

// Damaged is a stored value that cannot be used. It stays in the file until a change for the same
// ID is committed.
type Damaged struct {
	ID     volume.ID
	Reason string
}

// Found is what an opening has found of the journal.
type Found struct {
	// Entries is how many changes it had that were not in the database, and are now.
	Entries int
	// Lost is how many changes were in it behind damage, which no start takes over. After a reboot it is 0: the kernel writes to
	// the disk in any order, and a power cut may take what was answered last.
	Lost int
	// Aside are the files of another database's journal, by the names that they have now.
	Aside []string
}

// Open opens the store at path and creates it if there is no such file; the directory must exist.
// It holds an exclusive lock until Close, over the files of the journal too. What the journal has is in the
// database when Open returns.
//
// The error is [ErrDamaged], [ErrLocked], [ErrNewer] or that of a system call, and says what to do.
// An existing file was not changed then.
func Open(path string) (*Store, error) {
	s, err := open(path, kernelClock())
	if volume.IsNoSpace(err) {
		return nil, fmt.Errorf("%w; free some space on the file system of %s, then start again: "+
			"volumes that would make room cannot be deleted before their records are read", err, filepath.Dir(path))
	}
	return s, err
}

func open(path string, c clock) (*Store, error) {
	if err := create(path); err != nil {
		return nil, err
	}
	db, err := openDatabase(path, os.O_RDWR, ourDaemon)
	if err != nil {
		return nil, err
	}
	if place, err := os.OpenRoot(filepath.Dir(db.path)); err == nil {
		// An interrupted compaction left it. If it stays, the next one says why.
		_ = errors.Join(removeNew(place, db.path), place.Close())
	}
	s := &Store{db: db, pause: compactionPause, journal: &journal{doubted: map[volume.ID]bool{}}}
	err = db.view(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil || tx.Bucket(volumesBucket) == nil {
			return damagedError(db.path, errors.New("it is not a store of Katbox"))
		}
		s.noted = meta.Get(rebootedKey) != nil
		s.imported = meta.Get(legacyImportedKey) != nil
		s.clock = c.after(meta.Get(timelineKey))
		s.journal.journalState, _ = parseState(meta.Get(journalKey))
		return checkFormat(db.path, string(meta.Get(formatKey)))
	})
	if err == nil {
		err = s.findEntries()
	}
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	s.rebooted = s.clock.rebooted || s.noted
	db.reserve.ahead()
	s.timer = time.AfterFunc(lookInterval, s.look)
	if err := s.update(nothing); err != nil && s.found.Entries > 0 {
		return nil, errors.Join(fmt.Errorf("take over what the journal has: %w", err), s.Close())
	} // else the next commit reports it
	return s, nil
}

// findEntries makes what the journal has the first things to be written.
func (s *Store) findEntries() error {
	place, err := os.OpenRoot(filepath.Dir(s.db.path))
	if err != nil {
		return err
	}
	defer place.Close()
	j := s.journal
	j.waiting, s.found.Aside, s.found.Lost, err = readJournal(place, s.db.path, j.journalState)
	if s.clock.rebooted {
		s.found.Lost = 0
	}
	s.found.Entries = len(j.waiting)
	j.newest = j.durable + uint64(len(j.waiting))
	j.journalState = j.next(j.durable)
	return err
}

// Found returns what the opening has found of the journal.
func (s *Store) Found() Found { return s.found }

// checkFormat refuses a format that this version does not know.
func checkFormat(path, format string) error {
	n, err := strconv.Atoi(format)
	switch {
	case err != nil || n < 1:
		return damagedError(path, fmt.Errorf("its format is %q", format))
	case n > formatVersion:
		return fmt.Errorf("%s was %w (format %s, this version knows up to %d): do not downgrade,"+
			" start the newer version again", path, ErrNewer, format, formatVersion)
	}
	return nil
}

// Commit makes all changes durable in one transaction, all of them or none. Of several changes of
// one volume the last one counts; to forget an unknown volume is fine. Without changes it writes
// the clocks, and so reports whether a commit is possible. The tombstone of a volume that was known is
// part of the transaction, except where there is room only without it: a full disk must not stop
// what makes room.
//
// [ErrInvalidRecord] names a record that was refused. On a full disk the error is
// [volume.ErrNoSpace] and the system's ENOSPC or EDQUOT; the store stays usable and a later commit
// may succeed. After another error the changes may be there. If they are, the next commit first
// makes them durable, and fails if it cannot. After [ErrDamaged] every further call fails.
func (s *Store) Commit(changes []volume.Change) error {
	values, stones := make([][]byte, len(changes)), make([][]byte, len(changes))
	m := s.clock.writing()
	for i, c := range changes {
		var err error
		if values[i], err = encodeRecord(c, m); err != nil {
			return err
		}
		if c.Record == nil && c.Tombstone != nil {
			if stones[i], err = encodeTombstone(c.ID, *c.Tombstone, m); err != nil {
				return fmt.Errorf("%w: volume %q: %w", ErrInvalidRecord, c.ID, err)
			}
		}
	}
	var done burial
	write := func(t transaction) (err error) {
		known := make([]grave, 0, len(stones))
		for i, c := range changes {
			if err := t.fillTexts(c, m, &values[i], &stones[i]); err != nil {
				return fmt.Errorf("volume %q: %w", c.ID, err)
			}
			if stones[i] != nil && t.tx.Bucket(volumesBucket).Get([]byte(c.ID)) != nil {
				known = append(known, grave{stones[i], c.Tombstone.Record.Namespace})
			}
			if err := t.set(volumesBucket, []byte(c.ID), values[i]); err != nil {
				return fmt.Errorf("volume %q: %w", c.ID, err)
			}
		}
		done, err = t.bury(known, &s.ring)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.write(write)
	if volume.IsNoSpace(err) && slices.ContainsFunc(stones, func(stone []byte) bool { return stone != nil }) {
		s.ring.loaded = false
		clear(stones)
		err = s.write(write)
	}
	if volume.IsNoSpace(err) && len(changes) > 0 && !s.journal.has(changes) {
		// What makes room does not wait for what was answered before. None of that is of the same volumes.
		s.ring.loaded = false
		err = s.writeWithout(write)
	}
	s.journal.doubt(changes, err != nil)
	if err != nil {
		s.ring.loaded = false // the changes may be there
		return err
	}
	s.ring.buried(done)
	return nil
}

// encodeRecord returns the value of a change; nil where it forgets the volume.
func encodeRecord(c volume.Change, m moment) (value []byte, err error) {
	switch {
	case c.Record == nil:
		return nil, nil
	case c.Record.ID != c.ID:
		err = fmt.Errorf("its record is of volume %q", c.Record.ID)
	default:
		value, err = encodeValue(*c.Record, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: volume %q: %w", ErrInvalidRecord, c.ID, err)
	}
	return value, nil
}

// transaction changes the records; a compaction that runs learns of each change.
type transaction struct {
	tx         *bbolt.Tx
	compaction *compaction // nil if none runs
}

// set gives a key its value, in a bucket that it makes if it has to; with nil it deletes the key.
func (t transaction) set(bucket, key, value []byte) error {
	t.compaction.changes(bucket, key)
	in := t.tx.Bucket(bucket)
	switch {
	case value != nil && in == nil:
		var err error
		if in, err = t.tx.CreateBucket(bucket); err != nil {
			return err
		}
		fallthrough
	case value != nil:
		return in.Put(key, value)
	case in != nil:
		return in.Delete(key)
	}
	return nil
}

// nothing is a transaction that only writes what the journal has, and notes the clocks.
func nothing(transaction) error { return nil }

// update runs one transaction.
func (s *Store) update(fn func(transaction) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(fn)
}

// write is update with the lock held. What the journal has comes first. It notes the clocks too, which writes no more
// pages.
func (s *Store) write(fn func(transaction) error) error {
	entries, newest := s.journal.take()
	err := s.writeAfter(entries, newest, fn)
	if err == nil {
		s.journal.committed(newest)
		s.prepareJournal()
	}
	return err
}

// writeWithout is write, and leaves what the journal has for later.
func (s *Store) writeWithout(fn func(transaction) error) error {
	return s.writeAfter(nil, s.journal.durable, fn)
}

// writeAfter runs one transaction that writes these entries first, the last of which has the number newest.
func (s *Store) writeAfter(entries []entry, newest uint64, fn func(transaction) error) error {
	defer s.timer.Reset(lookInterval)
	state := s.journal.journalState
	state.durable = newest
	look, ok := s.clock.look()
	change := func(tx *bbolt.Tx) error {
		t := transaction{tx: tx, compaction: s.compaction}
		if err := t.write(entries, state); err != nil {
			return err
		}
		if err := fn(t); err != nil || !ok {
			return err
		}
		return errors.Join(t.set(metaBucket, timelineKey, look), s.noteReboot(t))
	}
	err := again(func() error { return s.db.update(change) }, func() error { return makeRoom(s.db.file) })
	if errors.Is(err, bolterrors.ErrIncompatibleValue) { // a bucket where a value was written, or the other way round
		err = damagedError(s.db.path, err)
	}
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	if ok {
		s.noted = s.rebooted
	}
	s.db.reserve.ahead()
	s.weigh()
	return nil
}

// look notes the clocks. If that fails, so does the next commit, which reports it.
func (s *Store) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = s.write(nothing)
	}
}

// Close makes durable what the journal has, releases the files and their lock, and ends a compaction that runs.
func (s *Store) Close() error {
	err := s.journal.close()
	s.mu.Lock()
	if !s.closed && !s.Waiting().IsZero() {
		err = errors.Join(err, s.write(nothing))
	}
	s.closed = true
	s.timer.Stop()
	s.mu.Unlock()
	s.background.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.db.close())
}
