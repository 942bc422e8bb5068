package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// MostTombstones is how many tombstones may be kept, in some 300 MB of the file. A start reads each, in some 3 us.
	MostTombstones = 1_000_000
	// surplusTogether is how many tombstones a commit takes away beyond those that it adds, when
	// there are more than there may be.
	surplusTogether = 64
	// goneFill is how full a page stays that is split: no tombstone comes in between later.
	goneFill = 0.95
	// goneTogether is how many tombstones are read while commits wait, which takes some 50 us.
	goneTogether = 128
	// goneAtOnce is how many tombstones a call of Gone looks at, which takes some 20 ms.
	goneAtOnce = 16 * goneTogether
)

// storedTombstone is a tombstone on disk; see the package comment. A number is never used again.
type storedTombstone struct {
	ID         string       `cbor:"1,keyasint"`
	Record     storedRecord `cbor:"2,keyasint"`
	Bytes      int64        `cbor:"3,keyasint,omitempty"`
	Inodes     int64        `cbor:"4,keyasint,omitempty"`
	Gone       int64        `cbor:"5,keyasint,omitempty"`
	Kept       int64        `cbor:"6,keyasint,omitempty"`
	Reason     uint64       `cbor:"7,keyasint,omitempty"`
	Factor     float64      `cbor:"8,keyasint,omitempty"`
	FreeBytes  int64        `cbor:"9,keyasint,omitempty"`
	FreeInodes int64        `cbor:"10,keyasint,omitempty"`
	By         string       `cbor:"11,keyasint,omitempty"`
	Why        string       `cbor:"12,keyasint,omitempty"`
}

// encodeTombstone returns what is to be sealed for a tombstone, written at m.
func encodeTombstone(id volume.ID, t volume.Tombstone, m moment) ([]byte, error) {
	if t.Record.ID != id {
		return nil, fmt.Errorf("its tombstone is of volume %q", t.Record.ID)
	}
	if err := checkTexts(t); err != nil {
		return nil, err
	}
	t.Record.Targets = nil
	record, err := storeRecord(t.Record, m)
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(storedTombstone{
		ID: string(id), Record: record, Bytes: t.Size.Bytes, Inodes: t.Size.Inodes,
		Gone: max(t.Gone.Unix(), 0), Kept: int64(t.Kept), Reason: uint64(t.Reason),
		Factor: t.Factor, FreeBytes: t.Free.Bytes, FreeInodes: t.Free.Inodes, By: t.By, Why: t.Why,
	})
}

// checkTexts refuses texts that are too long, or would change what a terminal shows. The limits are
// those of a hold.
func checkTexts(t volume.Tombstone) error {
	return volume.Hold{Kind: volume.Released, By: t.By, Why: t.Why}.Check()
}

// decodeTombstone returns the tombstone in a value, with times on the clock of m.now.
func decodeTombstone(key, value []byte, m moment) (volume.Tombstone, error) {
	body, err := openValue(key, value)
	if err != nil {
		return volume.Tombstone{}, err
	}
	var stored storedTombstone
	if err := decoding.Unmarshal(body, &stored); err != nil {
		return volume.Tombstone{}, err
	}
	r, err := stored.Record.record(volume.ID(stored.ID), m)
	if err != nil {
		return volume.Tombstone{}, err
	}
	t := volume.Tombstone{
		Number: numberOf(key), Record: r,
		Size:   volume.Size{Bytes: stored.Bytes, Inodes: stored.Inodes},
		Kept:   time.Duration(stored.Kept),
		Reason: volume.Reason(clamp8(stored.Reason)),
		Free:   volume.Size{Bytes: stored.FreeBytes, Inodes: stored.FreeInodes},
		By:     stored.By, Why: stored.Why,
	}
	if stored.Gone > 0 {
		t.Gone = m.gone(&stored, r.Unpublished)
	}
	if !math.IsNaN(stored.Factor) {
		t.Factor = min(max(stored.Factor, 0), 1)
	}
	return t, checkTexts(t)
}

// gone returns when the volume of a tombstone was deleted. The wall clock may have been set since, and within a boot
// the timeline knows better what it should have shown. The time for which a machine is off only the wall clock knows.
func (m moment) gone(stored *storedTombstone, unpublished time.Time) time.Time {
	shown := time.Unix(stored.Gone, 0)
	now, ok := m.readingOf(stored.Record.Boot)
	if !ok || stored.Kept < 0 || stored.Kept > int64(maxAge) || stored.Record.Boottime+stored.Kept < now-m.boottime {
		return shown // of another boot
	}
	gone := unpublished.Add(time.Duration(stored.Kept)).Round(0)
	if gone.Sub(shown).Abs() <= 2*time.Second { // it is cut to whole seconds, and so are others of that moment
		return shown
	}
	return time.Unix(gone.Unix(), 0)
}

// goneKey returns the key of a tombstone. Keys are in the order of the numbers.
func goneKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// numberOf returns the number in a key.
func numberOf(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

// KeepTombstones sets how many tombstones are kept: those of the volumes that went last, as far as each
// namespace has its share; see [ring]. Without the call there are none.
func (s *Store) KeepTombstones(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.forget(most)
	// What cannot be read now is read with the next commit, which says so.
	_ = s.db.view(func(tx *bbolt.Tx) error {
		s.ring.load(tx)
		return nil
	})
}

// grave is a tombstone that is to be written.
type grave struct {
	stone     []byte
	namespace string
}

// burial is what a transaction has done about tombstones: it has added some, from a number on, and has taken
// the first of the ring's surplus away.
type burial struct {
	first uint64
	added []grave
	taken int
}

// bury adds tombstones, and takes away some that the ring has lost. New ones lie together at the one end of
// their bucket, and those that leave it together at few other places, so that a commit writes as many pages with
// a full ring as with an empty one.
func (t transaction) bury(graves []grave, r *ring) (burial, error) {
	if len(graves) == 0 {
		return burial{}, nil
	}
	r.load(t.tx)
	done := burial{first: t.newestGone() + 1, added: graves[max(len(graves)-r.most, 0):]}
	for i, g := range done.added {
		key := goneKey(done.first + uint64(i))
		if err := t.set(goneBucket, key, sealValue(key, g.stone)); err != nil {
			return burial{}, fmt.Errorf("tombstone %x: %w", key, err)
		}
	}
	b := t.tx.Bucket(goneBucket)
	if b == nil {
		return done, nil
	}
	b.FillPercent = goneFill
	done.taken = min(surplusTogether+len(graves), len(r.surplus))
	for _, number := range r.surplus[:done.taken] {
		if err := t.set(goneBucket, goneKey(number), nil); err != nil {
			return burial{}, fmt.Errorf("tombstone %d: %w", number, err)
		}
	}
	return done, nil
}

// buried takes over what a transaction has done that is durable.
func (r *ring) buried(b burial) {
	r.left(b.taken)
	for i, g := range b.added {
		r.add(b.first+uint64(i), g.namespace)
	}
}

// newestGone returns the highest number of a tombstone, 0 if there is none.
func (t transaction) newestGone() uint64 {
	b := t.tx.Bucket(goneBucket)
	if b == nil {
		return 0
	}
	key, _ := b.Cursor().Last()
	return numberOf(key)
}

// Gone returns a part of the list of tombstones, the newest first. It looks at a few thousand at
// most, and commits wait for a small part of that only. A tombstone that cannot be used is left out.
func (s *Store) Gone(selection volume.GoneSelection) (volume.GonePage, error) {
	var page volume.GonePage
	limit := max(selection.Limit, 1)
	for looked, below := 0, selection.Below; ; {
		pairs, m, rest, err := s.goneBelow(below)
		if err != nil {
			return volume.GonePage{}, fmt.Errorf("read tombstones: %w", err)
		}
		for i, p := range pairs {
			number := numberOf(p.key)
			if number == 0 || below != 0 && number >= below {
				return page, nil // the file is damaged, and the list would have no end
			}
			below = number
			if p.value == nil {
				continue
			}
			stone, err := decodeTombstone(p.key, p.value, m)
			if err != nil || selection.ID != "" && selection.ID != stone.Record.ID || !selection.Selects(stone.Record) {
				continue
			}
			page.Tombstones = append(page.Tombstones, stone)
			if len(page.Tombstones) == limit {
				if rest || i < len(pairs)-1 {
					page.Next = below
				}
				return page, nil
			}
		}
		if !rest {
			return page, nil
		}
		if looked += len(pairs); looked >= goneAtOnce {
			page.Next = below
			return page, nil
		}
	}
}

// goneBelow returns the newest tombstones with numbers below a number, or the newest of all if that
// is 0, and whether there are more. Those that are only on their way out of the file have no value.
func (s *Store) goneBelow(below uint64) (list []pair, m moment, rest bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m = s.clock.reading(s.clock.now())
	err = s.db.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(goneBucket)
		if b == nil {
			return nil
		}
		s.ring.load(tx)
		cursor := b.Cursor()
		key, value := cursor.Last()
		if below != 0 {
			// Last again if all numbers are smaller.
			if at, _ := cursor.Seek(goneKey(below)); at != nil {
				key, value = cursor.Prev()
			} else {
				key, value = cursor.Last()
			}
		}
		for key != nil {
			if rest = len(list) == goneTogether; rest {
				break
			}
			if !s.ring.shows(numberOf(key)) {
				value = nil
			}
			list = append(list, pair{goneBucket, bytes.Clone(key), bytes.Clone(value)})
			key, value = cursor.Prev()
		}
		return nil
	})
	return list, m, rest, err
}
