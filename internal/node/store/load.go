package store

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Load calls each with the records of all volumes, in no order: they may not all fit in memory at
// once. The times in them carry a monotonic reading if now does, and none is after now. It returns
// the values that cannot be used. each must not call the store.
//
// While each runs with some records, the next ones are read.
func (s *Store) Load(now time.Time, each func(volume.Record)) (damaged []Damaged, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := loading{read: make(chan []volume.Record), used: make(chan []volume.Record, 2)}
	l.used <- nil
	go l.run(s.db, s.clock.reading(now))
	// If each panics, the store is not left with a reader.
	defer l.end()
	for batch := range l.read {
		for i := range batch {
			each(batch[i])
		}
		l.used <- batch[:0]
	}
	if l.err != nil {
		return nil, fmt.Errorf("load records: %w", l.err)
	}
	return l.damaged, nil
}

// loading reads the records ahead of their user, by one batch.
type loading struct {
	// read has a batch for the user, used takes it back. There are two.
	read, used chan []volume.Record
	// What is set when read is closed.
	damaged []Damaged
	err     error
}

// run reads all records. It gives up when used is closed.
func (l *loading) run(db *database, m moment) {
	defer close(l.read)
	var after []byte
	for batch, ok := []volume.Record(nil), true; ok; batch, ok = <-l.used {
		after, l.err = db.each(volumesBucket, after, func(key, value []byte) {
			if r, err := decodeValue(key, value, m); err != nil {
				l.damaged = append(l.damaged, Damaged{ID: volume.ID(key), Reason: err.Error()})
			} else {
				batch = append(batch, r)
			}
		})
		if l.err != nil {
			return
		}
		l.read <- batch
		if after == nil {
			return
		}
	}
}

// end waits until run has ended.
func (l *loading) end() {
	close(l.used)
	for range l.read {
	}
}
