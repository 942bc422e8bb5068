package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/crashpoint"
)

// placeOfCopy opens the directory of the records, if there is room for a copy with so
// many pages. What it returns stays that directory whatever is mounted over it.
func (s *Store) placeOfCopy(pages int64, result *Compaction) (*os.Root, error) {
	info, err := s.db.file.Stat()
	if err != nil {
		return nil, err
	}
	result.Before, result.After = info.Size(), info.Size()
	s.mu.Lock()
	// Its own free pages are less than half as much again.
	room := s.reserve.room(pages*int64(s.db.bolt.Info().PageSize)*3/2 + reserveAhead)
	s.mu.Unlock()
	if !room {
		return nil, errNoRoom
	}
	place, err := os.OpenRoot(filepath.Dir(s.db.path))
	if err != nil {
		return nil, err
	}
	if err := hasName(place, s.db); err != nil {
		return nil, errors.Join(err, place.Close())
	}
	return place, nil
}

// hasName makes sure that a database's name leads to it.
func hasName(place *os.Root, d *database) error {
	named, err := place.Lstat(filepath.Base(d.path))
	if err != nil {
		return err
	}
	opened, err := d.file.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = errMoved
	}
	return err
}

// createCopy makes an empty store beside the one at path, and locks it: once it has
// the name, no other process gets it.
func createCopy(place *os.Root, path string) (*database, error) {
	name := filepath.Base(path) + newSuffix
	if err := removeCopy(place, name); err != nil {
		return nil, err
	}
	file, err := place.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file, false, ownAdvice); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d := newDatabase(path+newSuffix, file, ownAdvice)
	if err := d.initialise(); err != nil {
		return nil, err
	}
	return d, nil
}

// removeCopy removes an unfinished copy, if there is one.
func removeCopy(place *os.Root, name string) error {
	err := crashpoint.Around("store/remove-copy", func() error { return place.Remove(name) })
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// removeUnfinished removes what a compaction that was cut off has left. If it cannot,
// the next compaction says why.
func (d *database) removeUnfinished() {
	place, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return
	}
	defer place.Close()
	_ = removeCopy(place, filepath.Base(d.path)+newSuffix)
}

// discard removes the copy.
func (c *compaction) discard(place *os.Root, name string) error {
	err := removeCopy(place, name)
	if c.db != nil {
		err = errors.Join(err, c.db.close())
	}
	return err
}

// copyAll copies all pairs, also those in buckets that only a newer version knows.
func (s *Store) copyAll(c *compaction) error {
	names, err := s.copyBuckets(c)
	if err != nil {
		return err
	}
	for _, name := range names {
		var after []byte
		for more := true; more; {
			var list []pair
			for more && len(list) < pairsTogether {
				var some []pair
				if some, more, err = s.pairs(c, name, after); err != nil {
					return err
				}
				if len(some) > 0 {
					list, after = append(list, some...), some[len(some)-1].key
				}
			}
			if err := c.write(list); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyBuckets makes the buckets, and returns their names.
func (s *Store) copyBuckets(c *compaction) (names [][]byte, err error) {
	sequences := map[string]uint64{}
	err = s.read(c, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			names = append(names, bytes.Clone(name))
			sequences[string(name)] = b.Sequence()
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return names, c.db.update(func(tx *bbolt.Tx) error {
		for _, name := range names {
			b, err := tx.CreateBucketIfNotExists(name)
			if err == nil {
				err = b.SetSequence(sequences[string(name)])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// read calls fn with the records as they are, while commits wait.
func (s *Store) read(c *compaction, fn func(*bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errStopped
	case len(c.changed) > mostChanges:
		return errBehind
	}
	return s.db.view(fn)
}

// pairs returns the next pairs of a bucket, after a key or from its beginning, and
// whether there are more.
func (s *Store) pairs(c *compaction, bucket, after []byte) (list []pair, more bool, err error) {
	err = s.read(c, func(tx *bbolt.Tx) error {
		began := time.Now()
		cursor := tx.Bucket(bucket).Cursor()
		key, value := cursor.Seek(after)
		if after != nil && bytes.Equal(key, after) {
			key, value = cursor.Next()
		}
		for ; key != nil; key, value = cursor.Next() {
			if value == nil {
				return errForeign
			}
			list = append(list, pair{bucket, bytes.Clone(key), bytes.Clone(value)})
			if len(list) == pairsTogether || time.Since(began) > readTime {
				more = true
				return nil
			}
		}
		return nil
	})
	return list, more, err
}

// write makes pairs of the copy what they are in the original.
func (c *compaction) write(list []pair) error {
	err := c.db.update(func(tx *bbolt.Tx) error {
		for _, p := range list {
			b := tx.Bucket(p.bucket)
			b.FillPercent = copyFill
			var err error
			if p.value == nil {
				err = b.Delete(p.key)
			} else {
				err = b.Put(p.key, p.value)
			}
			if err != nil {
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

// catchUp takes into the copy what has changed since it began, beside commits, until
// only a few changes are left.
func (s *Store) catchUp(c *compaction) error {
	for {
		var list []pair
		err := s.read(c, func(tx *bbolt.Tx) error {
			if len(c.changed) > lastChanges {
				list = c.take(tx, pairsTogether)
			}
			return nil
		})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := c.write(list); err != nil {
			return err
		}
	}
}

// take returns changed pairs as they are now, and forgets that they changed.
func (c *compaction) take(tx *bbolt.Tx, most int) (list []pair) {
	for name := range c.changed {
		if len(list) == most {
			break
		}
		value := tx.Bucket([]byte(name.bucket)).Get([]byte(name.key))
		list = append(list, pair{[]byte(name.bucket), []byte(name.key), bytes.Clone(value)})
		delete(c.changed, name)
	}
	return list
}

// replace takes the last changes into the copy and gives it the name, while commits
// wait. It returns the database that was replaced, or nil. With an error besides, the
// disk may still have the name for the old file: commits fail until it is durable.
func (s *Store) replace(c *compaction, place *os.Root) (old *database, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errStopped
	case c.reserve.err != nil && s.reserve.err == nil:
		return nil, errNoRoom
	}
	var last []pair
	err = s.db.view(func(tx *bbolt.Tx) error { last = c.take(tx, len(c.changed)); return nil })
	if err == nil {
		err = c.write(last)
	}
	if err == nil {
		// bbolt syncs data only; the file is about to be relied upon by name.
		err = crashpoint.Around("store/sync-copy", c.db.file.Sync)
	}
	if err == nil {
		err = hasName(place, s.db)
	}
	if err != nil {
		return nil, err
	}
	dir, err := place.Open(".")
	if err != nil {
		return nil, err
	}
	name := filepath.Base(s.db.path)
	err = crashpoint.Around("store/rename-copy", func() error { return place.Rename(name+newSuffix, name) })
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	old = s.db
	c.db.path, c.db.unsettled.dir = old.path, dir
	s.db, s.reserve, s.compaction = c.db, c.reserve, nil
	if err := s.db.settle(); err != nil {
		s.db.unsettled.replaced = old
		return old, err
	}
	return old, nil
}
