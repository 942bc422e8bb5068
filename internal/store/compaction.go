package store

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/crashpoint"
	"github.com/katbox/katbox/internal/volume"
)

const (
	// compactionPause is the least time between two compactions. After a failure it
	// doubles, up to longestCompactionPause.
	compactionPause        = time.Minute
	longestCompactionPause = time.Hour

	// readTime is how long pairs are read while commits wait, about as long as a commit
	// takes: thousands of pairs, or those of one page if that comes from a slow disk.
	readTime = 2 * time.Millisecond
	// pairsTogether is how many pairs of the copy are written and synced together,
	// about 1 MiB, so that the disk is not given all of a large copy at once.
	pairsTogether = 4096
	// lastChanges is how many changes may be left for the end, when commits wait: a few
	// milliseconds. So many come together only while hundreds of calls run at once.
	lastChanges = 1024
	// mostChanges is how many changes may wait for the copy, with some 20 MB of memory.
	// More come together only on a disk that is very slow and very busy.
	mostChanges = 100_000

	// copyFill is how full the pages of the copy are, as on average in a file whose
	// keys came in no order. Full pages would have to be split soon.
	copyFill = 0.7
)

var (
	// errStopped and errNoRoom end a compaction, and are no news.
	errStopped = errors.New("the store is closed")
	errNoRoom  = errors.New("no room for a copy")
	// errForeign: what this version never writes is left as it is.
	errForeign = errors.New("it has a bucket in a bucket, which this version does not know")
	errMoved   = errors.New("it has lost its name: the file was moved, or another file system is mounted there")
	errBehind  = errors.New("the records change faster than they are copied")
)

// compaction replaces the file by a copy without free pages.
//
// bbolt never makes its file smaller, and writes the list of free pages with each
// commit: 8 bytes for each page. Once a million records have come and gone, that is
// 800 KiB. So each commit counts the pages that the list takes beyond its first one,
// and when as many were written as a copy takes, the copy is made: what it costs is
// never more than what was wasted before.
//
// The copy is made beside commits. They wait while some pairs are read, and in the end
// for the last changes and until the copy has the name.
type compaction struct {
	db      *database
	reserve reserve
	// changed is what has changed in the records since the copy began; Store.mu
	// protects it.
	changed map[pairName]struct{}
}

type pairName struct{ bucket, key string }

// pair is a key with its value; nil if there is none.
type pair struct {
	bucket, key, value []byte
}

// Compaction is what became of one.
type Compaction struct {
	// Before and After are the size of the file, in bytes.
	Before, After int64
	Took          time.Duration
	// Err is why the file stays as it is. It is tried again later.
	Err error
}

// changes notes that a pair changes.
func (c *compaction) changes(bucket, key []byte) {
	if c != nil {
		c.changed[pairName{string(bucket), string(key)}] = struct{}{}
	}
}

// OnCompaction sets the function that is called after each compaction, also after one
// before the call. It may be called on any goroutine.
func (s *Store) OnCompaction(report func(Compaction)) {
	s.mu.Lock()
	last := s.last
	s.report = report
	s.mu.Unlock()
	if last != nil {
		report(*last)
	}
}

// weigh starts a compaction when it is worth it. It is called after each commit, with
// the lock held.
func (s *Store) weigh() {
	wasted := s.db.wastedPages()
	s.wasted += wasted
	if wasted == 0 || s.compaction != nil || s.closed || time.Now().Before(s.notBefore) {
		return
	}
	if used := s.db.usedPages(wasted); s.wasted >= used {
		s.beginCompaction(used)
	}
}

// beginCompaction starts a compaction of the given number of pages, with the lock held.
func (s *Store) beginCompaction(pages int64) {
	c := &compaction{changed: map[pairName]struct{}{}}
	s.compaction = c
	s.background.Go(func() { s.compact(c, pages) })
}

// wastedPages returns how many pages the last commit wrote for the list of free pages
// beyond the first one.
func (d *database) wastedPages() int64 {
	return int64(d.bolt.Stats().FreelistInuse) / int64(d.bolt.Info().PageSize)
}

// usedPages returns how many pages are in use without the list of free pages, of which
// wasted are beyond its first one.
func (d *database) usedPages(wasted int64) (used int64) {
	stats := d.bolt.Stats()
	if err := d.view(func(tx *bbolt.Tx) error { used = tx.Size() / int64(d.bolt.Info().PageSize); return nil }); err != nil {
		return math.MaxInt64
	}
	return used - int64(stats.FreePageN+stats.PendingPageN) - (wasted + 1)
}

// compact runs a compaction that was started, for the given number of pages.
func (s *Store) compact(c *compaction, pages int64) {
	result, began := Compaction{}, time.Now()
	replaced, err := s.copyAndReplace(c, pages, &result)
	result.Took, result.Err = time.Since(began), err
	quiet := isQuiet(err)

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

// isQuiet tells whether a compaction has ended without news.
func isQuiet(err error) bool { return errors.Is(err, errStopped) || errors.Is(err, errNoRoom) }

func (s *Store) copyAndReplace(c *compaction, pages int64, result *Compaction) (replaced bool, err error) {
	place, err := s.placeOfCopy(pages, result)
	if err != nil {
		return false, err
	}
	defer place.Close()
	defer func() {
		if replaced {
			return
		}
		if volume.IsNoSpace(err) {
			err = errNoRoom
		}
		if e := c.discard(place, filepath.Base(s.db.path)+newSuffix); e != nil && isQuiet(err) {
			err = e
		} else {
			err = errors.Join(err, e)
		}
	}()
	if c.db, err = createCopy(place, s.db.path); err != nil {
		return false, err
	}
	if err := s.copyAll(c); err != nil {
		return false, err
	}
	if err := c.db.check(); err != nil {
		return false, fmt.Errorf("the copy is not whole: %w", err)
	}
	c.reserve = newReserve(c.db.file)
	c.reserve.ahead()
	if err := s.catchUp(c); err != nil {
		return false, err
	}
	old, err := s.replace(c, place)
	if old == nil {
		return false, err
	}
	if err == nil {
		err = old.release()
	}
	if info, e := s.db.file.Stat(); e == nil {
		result.After = info.Size()
	}
	return true, err
}

// release closes the file of a database that another one has replaced on disk too. It
// is emptied first, which gives its space back, and which keeps a process that has
// opened it by its name, and waits for the lock, from going on with it.
func (d *database) release() error {
	err := crashpoint.Around("store/empty-replaced", func() error { return d.file.Truncate(0) })
	return errors.Join(err, d.close())
}
