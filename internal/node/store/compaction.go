package store

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// compactionPause is the least time between two compactions. After a failure it doubles, up to
	// longestCompactionPause.
	compactionPause        = time.Minute
	longestCompactionPause = time.Hour
)

var (
	// errStopped and errNoRoom end a compaction, and are not reported.
	errStopped = errors.New("the store is closed")
	errNoRoom  = errors.New("no room for a copy")
)

// compaction replaces the file by a copy without free pages.
//
// bbolt never makes its file smaller, and writes the list of free pages with each commit, 8 bytes
// for each page: once a million records have come and gone, 800 KiB. So each commit counts the
// pages that the list takes beyond its first one. When as many were written as a copy has, the copy
// is made: it never costs more than what was wasted before.
//
// The copy is made beside commits. They wait while some pairs are read, and at the end for the last
// changes and until the copy has the name. A start removes what is left of one.
type compaction struct {
	db *database
	// changed is what has changed since the copy began; Store.mu protects it.
	changed map[pairName]struct{}
}

type pairName struct{ bucket, key string }

// Compaction is the outcome of one.
type Compaction struct {
	Before, After int64 // size of the file, in bytes
	Took          time.Duration
	Err           error // why the file stays as it is, until it is tried again
}

// changes notes that a pair changes.
func (c *compaction) changes(bucket, key []byte) {
	if c != nil {
		c.changed[pairName{string(bucket), string(key)}] = struct{}{}
	}
}

// OnCompaction sets the function that is called after each compaction, also after one before the
// call, on any goroutine.
func (s *Store) OnCompaction(report func(Compaction)) {
	s.mu.Lock()
	last := s.last
	s.report = report
	s.mu.Unlock()
	if last != nil {
		report(*last)
	}
}

// weigh starts a compaction when it is worth it, after each commit, with the lock held.
func (s *Store) weigh() {
	stats, pageSize := s.db.bolt.Stats(), int64(s.db.bolt.Info().PageSize)
	wasted := int64(stats.FreelistInuse) / pageSize
	s.wasted += wasted
	if wasted == 0 || s.compaction != nil || s.closed || time.Now().Before(s.notBefore) {
		return
	}
	used := int64(math.MaxInt64)
	_ = s.db.view(func(tx *bbolt.Tx) error {
		used = tx.Size()/pageSize - int64(stats.FreePageN+stats.PendingPageN) - (wasted + 1)
		return nil
	})
	if s.wasted >= used {
		s.beginCompaction(used)
	}
}

// beginCompaction starts a compaction of the given number of pages, with the lock held.
func (s *Store) beginCompaction(pages int64) {
	c := &compaction{changed: map[pairName]struct{}{}}
	s.compaction = c
	s.background.Go(func() { s.compact(c, pages) })
}

func (s *Store) compact(c *compaction, pages int64) {
	result, began := Compaction{}, time.Now()
	place, err := s.placeOfCopy(pages, &result)
	replaced := false
	if err == nil {
		replaced, err = s.copyAndReplace(c, place)
		_ = place.Close() // it was only read
	}
	if info, e := s.db.file.Stat(); e == nil {
		result.After = info.Size()
	}
	result.Took, result.Err = time.Since(began), err
	quiet := errors.Is(err, errStopped) || errors.Is(err, errNoRoom)

	s.mu.Lock()
	s.compaction, s.wasted = nil, 0
	if replaced {
		s.pause = compactionPause
	}
	s.notBefore = time.Now().Add(s.pause)
	if err != nil && !quiet {
		s.pause = min(2*s.pause, longestCompactionPause)
	}
	report := s.report
	if !quiet {
		s.last = &result
	}
	s.mu.Unlock()
	if report != nil && !quiet {
		report(result)
	}
}

// placeOfCopy opens the directory of the records, if there is room for a copy with the given number
// of pages. It stays that directory whatever is mounted over it.
func (s *Store) placeOfCopy(pages int64, result *Compaction) (*os.Root, error) {
	info, err := s.db.file.Stat()
	if err != nil {
		return nil, err
	}
	result.Before = info.Size()
	// The free pages of the copy itself are less than half as much again.
	if !s.db.reserve.room(pages*int64(s.db.bolt.Info().PageSize)*3/2 + reserveAhead) {
		return nil, errNoRoom
	}
	place, err := os.OpenRoot(filepath.Dir(s.db.path))
	if err != nil {
		return nil, err
	}
	if err := hasName(place.Lstat, filepath.Base(s.db.path), s.db.file); err != nil {
		return nil, errors.Join(err, place.Close())
	}
	return place, nil
}
