package store

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

// journal has the changes that were answered before they are in the database: in the page cache of two files, which the
// end of the process leaves there. The next transaction writes them all, whatever else it is for, and notes the number
// of the last one in the database. A start begins with the entries that follow that number.
//
// Only changes whose loss in a power cut does no harm are here (see [volume.MayLag]), so nothing waits for the disk to have
// the files. Their blocks are written beforehand: then to overwrite them takes no room, and makes the file system commit
// nothing.
type journal struct {
	// mu covers numbering and writing, and never a sync.
	mu sync.Mutex
	journalState
	// begun: the database has the state, so that what is written now is found.
	begun bool
	// files are written in turn: each transaction that begins takes what is in the one, and the other is
	// written from its start.
	files   [2]*journalFile
	current int
	// newest is the number of the last entry that was written, or may be.
	newest uint64
	// waiting are the entries after journalState.durable, in order.
	waiting []entry
	// oldest is when the first of them was made, or the one that is being written if there is no other; nil if there is
	// none. It is read without mu, which a write holds for as long as the disk hangs.
	oldest atomic.Pointer[time.Time]
	// writing is since when an entry is being written; nil while none is. It is read without mu, too.
	writing atomic.Pointer[time.Time]
	// told: the next transaction is on its way.
	told bool
	// doubted are the volumes of which a commit has failed: the disk may have a change that was answered with an error.
	// Their next one waits.
	doubted map[volume.ID]bool
	// broken is why nothing is written before a transaction has written all that waits.
	broken error
	// missing is why there are no files; lookedAt is when they were last tried to be made.
	missing  error
	lookedAt time.Time
}

// journalState is what the database has of its journal.
type journalState struct {
	// database tells this database from others that once lay beside these files.
	database [16]byte
	// epoch is another one after each start: what an earlier one has left behind the entries that a power cut took is
	// no entry any more.
	epoch uint64
	// durable is the number of the last entry that is in the database.
	durable uint64
}

// entry is one change.
type entry struct {
	number uint64
	id     volume.ID
	value  []byte // as in the database; nil forgets the volume
	since  time.Time
}

var (
	// errNoJournal is why changes wait in a store whose journal was never begun, or is closed.
	errNoJournal = errors.New("there is no journal")
	errFull      = errors.New("both files of the journal are full of changes that no commit has taken")
	errDoubted   = errors.New("a commit of the volume's last change has failed")
)

// newState returns the state of a journal that has no entries yet.
func newState() (s journalState) {
	_, _ = rand.Read(s.database[:]) // it never fails
	return s.next(0)
}

// next returns the state after a start that has taken the entries up to a number over.
func (s journalState) next(durable uint64) journalState {
	var epoch [8]byte
	_, _ = rand.Read(epoch[:])
	s.epoch, s.durable = binary.BigEndian.Uint64(epoch[:]), durable
	return s
}

// seal returns the value in the database.
func (s journalState) seal() []byte {
	body := binary.BigEndian.AppendUint64(s.database[:], s.epoch)
	return sealValue(journalKey, binary.BigEndian.AppendUint64(body, s.durable))
}

// parseState returns the state in the database. Without a usable one no journal is this database's.
func parseState(value []byte) (s journalState, ok bool) {
	body, err := openValue(journalKey, value)
	if err != nil || len(body) != len(s.database)+16 {
		return newState(), false
	}
	rest := body[copy(s.database[:], body):]
	s.epoch, s.durable = binary.BigEndian.Uint64(rest), binary.BigEndian.Uint64(rest[8:])
	return s, true
}

// add writes an entry. wait is why its change has to wait for a transaction instead. first tells that none was written
// since the last transaction began.
func (j *journal) add(e entry, patience time.Duration) (first bool, wait error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.since = time.Now()
	if err := j.unusable(); err != nil {
		return false, err
	}
	if len(j.waiting) > 0 && e.since.Sub(j.waiting[0].since) > patience {
		return false, fmt.Errorf("no commit has succeeded for %v", e.since.Sub(j.waiting[0].since).Round(time.Second))
	}
	if j.doubted[e.id] {
		return false, errDoubted
	}
	e.number = j.newest + 1
	content := e.encode(j.journalState)
	f := j.room(len(content))
	if f == nil {
		return false, errFull
	}
	// After an error it may be there or not. A start takes it for one that counts only until a transaction has passed its
	// number, and the change is in that one.
	j.newest = e.number
	j.oldest.CompareAndSwap(nil, &e.since)
	j.writing.Store(&e.since)
	err := kernel.Pwrite(int(f.file.Fd()), content, f.end)
	j.writing.Store(nil)
	if err != nil {
		j.broken = fmt.Errorf("write %s: %w", f.file.Name(), err)
		j.date()
		return false, j.broken
	}
	f.end += int64(len(content))
	f.newest = e.number
	j.waiting = append(j.waiting, e)
	first = !j.told
	j.told = true
	return first, nil
}

// unusable is why no entry can be written at present; nil if one can.
func (j *journal) unusable() error {
	switch {
	case j.missing != nil:
		return j.missing
	case !j.begun || j.files[0] == nil:
		return errNoJournal
	}
	return j.broken
}

// room returns the file to write so many bytes to; nil if both are full.
func (j *journal) room(size int) *journalFile {
	if f := j.files[j.current]; f.end+int64(size) <= journalSize {
		return f
	}
	if !j.turn() || int64(size) > journalSize-journalHeader {
		return nil
	}
	return j.files[j.current]
}

// turn goes on to the other file, if the database has all that is in it.
func (j *journal) turn() bool {
	other := j.files[1-j.current]
	if other == nil || other.newest > j.durable {
		return false
	}
	j.current, other.end = 1-j.current, journalHeader
	return true
}

// take returns what a transaction has to write, and the number up to which the database has everything after it.
func (j *journal) take() (entries []entry, newest uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told = false
	j.turn()
	return slices.Clip(j.waiting), j.newest
}

// committed says that a transaction has written what it took.
func (j *journal) committed(newest uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.durable, j.begun = newest, true
	n, _ := slices.BinarySearchFunc(j.waiting, newest+1, func(e entry, number uint64) int { return cmp.Compare(e.number, number) })
	j.waiting = slices.Clone(j.waiting[n:])
	j.date()
	if j.newest == newest && j.files[j.current] != nil {
		j.broken = nil
		j.files[j.current].end = journalHeader // all is in the database
	}
}

// date notes when the first entry was made that waits.
func (j *journal) date() {
	if len(j.waiting) == 0 {
		j.oldest.Store(nil)
		return
	}
	since := j.waiting[0].since
	j.oldest.Store(&since)
}

// since is when the oldest change was made that the database does not have; zero if it has all. It does not wait.
func (j *journal) since() time.Time {
	if since := j.oldest.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// has reports whether a change of one of these volumes waits.
func (j *journal) has(changes []volume.Change) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.waiting, func(e entry) bool {
		return slices.ContainsFunc(changes, func(c volume.Change) bool { return c.ID == e.id })
	})
}

// doubt notes whether the disk certainly has what a commit was to change.
func (j *journal) doubt(changes []volume.Change, failed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range changes {
		if failed {
			j.doubted[c.ID] = true
		} else {
			delete(j.doubted, c.ID)
		}
	}
}

// write makes the records what the entries say, the last one of each volume, and notes that the database has them. A
// version that does not read the journal does not open the database from then on.
func (t transaction) write(entries []entry, state journalState) error {
	last := make(map[volume.ID]int, len(entries))
	for i, e := range entries {
		last[e.id] = i
	}
	for i, e := range entries {
		if last[e.id] != i {
			continue
		}
		if err := t.set(volumesBucket, []byte(e.id), e.value); err != nil {
			return fmt.Errorf("volume %q: %w", e.id, err)
		}
	}
	meta := t.tx.Bucket(metaBucket)
	for _, p := range []pair{{metaBucket, journalKey, state.seal()}, {metaBucket, formatKey, formatValue()}} {
		if bytes.Equal(p.value, meta.Get(p.key)) {
			continue
		}
		if err := t.set(p.bucket, p.key, p.value); err != nil {
			return err
		}
	}
	return nil
}

// StartJournal makes the files of the journal ready, from when on [Store.Journal] takes changes over. The error is why
// it takes none, and all wait for a commit; where room was short it is tried again.
func (s *Store) StartJournal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journals = true
	s.prepareJournal()
	return s.journal.missing
}

// Journal takes a change over that may be answered before it is on the disk: the end of the process does not undo it, and the
// next commit makes it durable, before any other change of the volume. wait is why the change has to wait for a commit
// instead; nothing was taken over then. So it is while the oldest change that was taken over, and is not durable, is older
// than patience; where both files are full, or cannot be written; and after a commit of the volume's last change has failed.
// first tells that no other change was taken over since the last commit began.
//
// [ErrInvalidRecord] names a record that was refused.
func (s *Store) Journal(c volume.Change, patience time.Duration) (first bool, wait, err error) {
	e := entry{id: c.ID}
	if e.value, err = encodeRecord(c, s.clock.writing()); err != nil {
		return false, nil, err
	}
	if c.Tombstone != nil || c.ID == "" || len(c.ID) > math.MaxUint8 {
		return false, errNoJournal, nil
	}
	first, wait = s.journal.add(e, patience)
	return first, wait, nil
}

// Journalled reports whether a change of the volume waits that [Store.Journal] took over and that is not durable. Where the disk is
// full, no other one of it can be committed.
func (s *Store) Journalled(id volume.ID) bool { return s.journal.has([]volume.Change{{ID: id}}) }

// Waiting returns since when the oldest change waits that [Store.Journal] took over, or is taking over, and that is not
// durable; zero if all are. It never waits, for a disk that hangs neither.
func (s *Store) Waiting() time.Time { return s.journal.since() }

// Writing returns since when a change is being written to the journal; zero while none is. It never waits, for a disk that hangs
// neither.
func (s *Store) Writing() time.Time {
	if since := s.journal.writing.Load(); since != nil {
		return *since
	}
	return time.Time{}
}
