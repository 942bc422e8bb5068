package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// lastChanges is how many changes may be left for the end, when commits wait some milliseconds.
	lastChanges = 1024
	// mostChanges is how many changes may wait for the copy, in some 20 MB of memory.
	mostChanges = 100_000
	// copyFill is how full the pages of the copy are: as on average in a file whose keys came in no
	// order. Full pages would soon be split.
	copyFill = 0.7
)

var (
	// errForeign: what this version never writes stays as it is.
	errForeign = errors.New("it has a bucket in a bucket, which this version does not know")
	errBehind  = errors.New("the records change faster than they are copied")
)

// copyAndReplace makes the copy and gives it the name. With true the file was replaced, whatever
// the error is.
func (s *Store) copyAndReplace(c *compaction, place *os.Root) (replaced bool, err error) {
	var old *database
	if err = s.makeCopy(c, place); err == nil {
		old, err = s.replace(c, place)
	}
	if old != nil {
		if err == nil {
			err = old.release()
		}
		return true, err
	}
	if volume.IsNoSpace(err) {
		err = errNoRoom
	}
	rest := removeNew(place, s.db.path)
	if c.db != nil {
		rest = errors.Join(rest, c.db.close())
	}
	if rest != nil {
		err = fmt.Errorf("%s; remove the copy: %w", err.Error(), rest)
	}
	return false, err
}

// makeCopy makes a whole copy that lacks a few changes at most.
func (s *Store) makeCopy(c *compaction, place *os.Root) error {
	err := removeNew(place, s.db.path)
	if err == nil {
		c.db, err = newStore(place, s.db.path, s.db.file)
	}
	if err == nil {
		err = s.copyAll(c)
	}
	if err != nil {
		return err
	}
	if err := c.db.check(); err != nil {
		return fmt.Errorf("the copy is not whole: %w", err)
	}
	c.db.reserve.ahead()
	return s.catchUp(c)
}

// locked calls fn while commits wait, unless the compaction cannot go on.
func (s *Store) locked(c *compaction, fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errStopped
	case len(c.changed) > mostChanges:
		return errBehind
	}
	return fn()
}

// copyAll copies all pairs, also those in buckets that only a newer version knows. The copy is
// synced after each batch, so that the disk does not get all of a large copy at once.
func (s *Store) copyAll(c *compaction) error {
	sequences := map[string]uint64{} // by the name of the bucket
	err := s.locked(c, func() error {
		return s.db.view(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				sequences[string(name)] = b.Sequence()
				return nil
			})
		})
	})
	for name, sequence := range sequences {
		if err == nil {
			err = c.db.update(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				return b.SetSequence(sequence)
			})
		}
		for batch, after := []pair(nil), []byte(nil); err == nil; err = c.write(batch) {
			if batch, err = s.batch(c, []byte(name), after); err != nil || len(batch) == 0 {
				break
			}
			after = batch[len(batch)-1].key
		}
	}
	return err
}

// batch returns the pairs of a bucket that follow a key.
func (s *Store) batch(c *compaction, bucket, after []byte) (list []pair, err error) {
	for len(list) < pairsTogether {
		err := s.locked(c, func() (err error) {
			after, err = s.db.each(bucket, after, func(key, value []byte) {
				list = append(list, pair{bucket, bytes.Clone(key), bytes.Clone(value)})
			})
			return err
		})
		if slices.ContainsFunc(list, func(p pair) bool { return p.value == nil }) {
			err = errForeign
		}
		if err != nil || after == nil {
			return list, err
		}
	}
	return list, nil
}

// write makes pairs of the copy what they are in the original.
func (c *compaction) write(list []pair) error {
	err := c.db.update(func(tx *bbolt.Tx) error {
		for _, p := range list {
			// The transaction keeps one bucket of a name.
			if b := tx.Bucket(p.bucket); b != nil {
				b.FillPercent = copyFill
			}
			if err := (transaction{tx: tx}).set(p.bucket, p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the copy: %w", err)
	}
	return nil
}

// catchUp writes to the copy what has changed since it began, beside commits, until only a few
// changes are left.
func (s *Store) catchUp(c *compaction) error {
	for {
		var list []pair
		err := s.locked(c, func() (err error) {
			if len(c.changed) > lastChanges {
				list, err = s.take(c, pairsTogether)
			}
			return err
		})
		if err == nil && len(list) > 0 {
			err = c.write(list)
		}
		if err != nil || len(list) == 0 {
			return err
		}
	}
}

// take returns changed pairs as they are now, and forgets that they changed.
func (s *Store) take(c *compaction, most int) (list []pair, err error) {
	err = s.db.view(func(tx *bbolt.Tx) error {
		for name := range c.changed {
			if len(list) == most {
				break
			}
			change := pair{bucket: []byte(name.bucket), key: []byte(name.key)}
			// The transaction that was to make the bucket may have failed.
			if b := tx.Bucket(change.bucket); b != nil {
				change.value = bytes.Clone(b.Get(change.key))
			}
			list = append(list, change)
			delete(c.changed, name)
		}
		return nil
	})
	return list, err
}

// replace writes the last changes to the copy and gives it the name, while commits wait. It returns
// the database that was replaced, or nil. With an error too, commits fail until the name is
// durable.
func (s *Store) replace(c *compaction, place *os.Root) (old *database, err error) {
	err = s.locked(c, func() error {
		if c.db.reserve.err != nil && s.db.reserve.err == nil {
			return errNoRoom
		}
		last, err := s.take(c, len(c.changed))
		if err == nil {
			err = c.write(last)
		}
		if err == nil {
			err = c.db.takeName(place, s.db.path, s.db.file)
		}
		if err != nil {
			return err
		}
		old = s.db
		s.db, s.compaction = c.db, nil
		if err := s.db.settle(); err != nil {
			s.db.unsettled.replaced = old
			return err
		}
		return nil
	})
	return old, err
}

// release closes the file of a database that another one has replaced on disk too. It is emptied
// first, which gives its space back, and a process that has opened it by its name, and waits for
// the lock, cannot go on with it.
func (d *database) release() error {
	err := kernel.Truncate(d.file, 0)
	return errors.Join(err, d.close())
}
