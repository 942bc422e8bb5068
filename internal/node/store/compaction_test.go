package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// peak is how many records come and go: for some 3,500 free pages, whose list is longer than
	// all else that a commit writes.
	peak = 30_000
	// smallPeak is enough for a list of more than one page.
	smallPeak = 8_000
)

// afterPeak returns an open store that held most records and holds kept. It compacts nothing before
// a test says so.
func afterPeak(t testing.TB, path string, most, kept int) *Store {
	t.Helper()
	s := openStore(t, path)
	s.notBefore = time.Now().Add(time.Hour)
	changes := make([]volume.Change, most)
	for i := range changes {
		changes[i] = put(example(i))
	}
	commit(t, s, changes...)
	for i := range changes {
		changes[i] = forget(example(i).ID)
	}
	commit(t, s, changes[kept:]...)
	return s
}

// compacted commits until a compaction is over, and returns what became of it.
func compacted(t testing.TB, s *Store) Compaction {
	t.Helper()
	s.mu.Lock()
	s.notBefore = time.Time{}
	s.last = nil
	s.mu.Unlock()
	for range 1000 {
		commit(t, s, put(example(peak)), forget(example(peak).ID))
		s.background.Wait()
		if s.last != nil {
			return *s.last
		}
	}
	t.Fatal("there was no compaction")
	return Compaction{}
}

// pagesPerCommit is how many pages a commit of one record writes.
func pagesPerCommit(t testing.TB, s *Store) float64 {
	t.Helper()
	stats := func() int64 {
		of := s.db.bolt.Stats()
		return of.TxStats.GetPageCount()
	}
	const commits = 20
	before := stats()
	for i := range commits {
		commit(t, s, put(example(peak+i)))
	}
	pages := float64(stats()-before) / commits
	for i := range commits {
		commit(t, s, forget(example(peak+i).ID))
	}
	return pages
}

// TestCommitAfterAPeakWritesNoMore: what a commit writes does not depend on how many records there
// once were, neither while the daemon runs nor after a restart.
func TestCommitAfterAPeakWritesNoMore(t *testing.T) {
	for _, kept := range []int{0, 3_000} {
		t.Run(fmt.Sprintf("kept=%d", kept), func(t *testing.T) {
			fresh := openStore(t, filepath.Join(t.TempDir(), "fresh.db"))
			fill(t, fresh, kept)
			want := pagesPerCommit(t, fresh)

			path := filepath.Join(t.TempDir(), "store.db")
			s := afterPeak(t, path, peak, kept)
			result := compacted(t, s)
			if result.Err != nil || result.After > result.Before/2 {
				t.Errorf("compaction %+v, want less than half of the file left", result)
			}
			if got := pagesPerCommit(t, s); got > 1.2*want {
				t.Errorf("a commit writes %.1f pages after the peak, and %.1f in a fresh file", got, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, path)
			if got := pagesPerCommit(t, s); got > 1.2*want {
				t.Errorf("a commit writes %.1f pages after a restart, and %.1f in a fresh file", got, want)
			}
			if got := len(load(t, s, time.Now())); got != kept {
				t.Errorf("%d records, want %d", got, kept)
			}
		})
	}
}

// TestStartAfterAPeak: the daemon was stopped before a compaction, as one of a version without is.
func TestStartAfterAPeak(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := afterPeak(t, path, smallPeak, 10).Close(); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path)
	reported := make(chan Compaction, 1)
	s.OnCompaction(func(c Compaction) { reported <- c })
	for range 50 {
		commit(t, s)
	}
	s.background.Wait()
	select {
	case c := <-reported:
		if c.Err != nil || c.After >= c.Before {
			t.Errorf("compaction %+v", c)
		}
	default:
		t.Error("no compaction")
	}
	if got := len(load(t, s, time.Now())); got != 10 {
		t.Errorf("%d records, want 10", got)
	}
}

// TestCompactionKeepsEverything: all buckets, values that cannot be used, and what only a newer
// version knows.
func TestCompactionKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := afterPeak(t, path, smallPeak, 500)
	err := s.db.update(func(tx *bbolt.Tx) error {
		newer, err := tx.CreateBucket([]byte("newer"))
		if err != nil {
			return err
		}
		empty, err := tx.CreateBucket([]byte("empty"))
		if err != nil {
			return err
		}
		return errors.Join(newer.SetSequence(7), empty.SetSequence(8), newer.Put([]byte("key"), []byte("value")),
			newer.Put([]byte("none"), nil), tx.Bucket(metaBucket).Put([]byte("newer"), []byte("too")),
			tx.Bucket(volumesBucket).Put([]byte("broken"), []byte("broken")))
	})
	if err != nil {
		t.Fatal(err)
	}
	content := func() map[string]string {
		all := map[string]string{}
		err := s.db.view(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				all[string(name)] = fmt.Sprint(b.Sequence())
				return b.ForEach(func(k, v []byte) error {
					if string(k) != string(timelineKey) {
						all[string(name)+"/"+string(k)] = string(v)
					}
					return nil
				})
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := content()
	if result := compacted(t, s); result.Err != nil {
		t.Fatal(result.Err)
	}
	after := content()
	for key, value := range before {
		if got, ok := after[key]; !ok || got != value {
			t.Errorf("%q is %q, want %q", key, got, value)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d pairs and buckets, want %d", len(after), len(before))
	}
}

// TestChangesDuringACompaction: records that change while they are copied, before and after their
// turn, are as they were committed last.
func TestChangesDuringACompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	const kept = 5_000
	s := afterPeak(t, path, smallPeak, kept)
	c := &compaction{changed: map[pairName]struct{}{}}
	var result Compaction
	place, err := s.placeOfCopy(1, &result)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	if c.db, err = newStore(place, path, s.db.file); err != nil {
		t.Fatal(err)
	}
	want := map[volume.ID]string{}
	for i := range kept {
		want[example(i).ID] = example(i).PodName
	}
	next := 0
	change := func(step string) {
		t.Helper()
		var changes []volume.Change
		for i := range 300 {
			changed, forgotten, added := example(next+i), example(next+300+i), example(2*peak+next+i)
			changed.PodName, added.PodName = step, step
			changes = append(changes, put(changed), forget(forgotten.ID), put(added))
			want[changed.ID], want[added.ID] = step, step
			delete(want, forgotten.ID)
		}
		next += 700
		commit(t, s, changes...)
	}
	s.mu.Lock()
	s.compaction = c
	s.mu.Unlock()
	change("before the copy")
	if err := s.copyAll(c); err != nil {
		t.Fatal(err)
	}
	change("after the copy")
	if err := s.catchUp(c); err != nil {
		t.Fatal(err)
	}
	change("after it has caught up")
	c.db.reserve.ahead()
	old, err := s.replace(c, place)
	if old == nil || err != nil {
		t.Fatalf("replace = %v, %v", old, err)
	}
	if err := old.release(); err != nil {
		t.Fatal(err)
	}
	change("in the copy")
	for range 2 {
		got := load(t, s, time.Now())
		for id, podName := range want {
			if got[id].PodName != podName {
				t.Errorf("%s is %q, want %q", id, got[id].PodName, podName)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d records, want %d", len(got), len(want))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path)
	}
}

// TestCommitsBesideCompactions commits from several goroutines while one compaction follows the
// other.
func TestCommitsBesideCompactions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := afterPeak(t, path, smallPeak, 2_000)
	s.mu.Lock()
	compactions := 0
	s.report = func(c Compaction) {
		if c.Err != nil {
			t.Error(c.Err)
		}
		compactions++
	}
	s.mu.Unlock()
	const goroutines, rounds = 4, 30
	done := make(chan error)
	for g := range goroutines {
		go func() {
			for round := range rounds {
				var changes []volume.Change
				for i := range 100 {
					// Each comes and goes; the last round's stay.
					r := example(peak + g*1000 + i)
					r.PodName = fmt.Sprint(round)
					changes = append(changes, put(r), forget(example(peak+g*1000+500+(round*100+i)%400).ID))
				}
				if err := s.Commit(changes); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for left := goroutines; left > 0; {
		select {
		case err := <-done:
			left--
			if err != nil {
				t.Error(err)
			}
		default:
			s.mu.Lock()
			s.beginCompaction(1)
			s.mu.Unlock()
			s.background.Wait()
		}
	}
	if compactions == 0 {
		t.Error("no compaction")
	}
	t.Logf("%d compactions", compactions)
	for range 2 {
		got := load(t, s, time.Now())
		if len(got) != 2_000+goroutines*100 {
			t.Errorf("%d records, want %d", len(got), 2_000+goroutines*100)
		}
		for g := range goroutines {
			for i := range 100 {
				if r := got[example(peak+g*1000+i).ID]; r.PodName != fmt.Sprint(rounds-1) {
					t.Errorf("record %d of goroutine %d is of round %q", i, g, r.PodName)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path)
	}
}

// TestCompactionThatIsRefused: whatever keeps the copy from being made leaves the file, and the
// store goes on with it.
func TestCompactionThatIsRefused(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, s *Store, path string)
		want    error
	}{
		{"the name is taken", func(t *testing.T, _ *Store, path string) {
			if err := os.MkdirAll(path+newSuffix+"/full", 0o700); err != nil {
				t.Fatal(err)
			}
		}, unix.ENOTEMPTY},
		{"a foreign structure", func(t *testing.T, s *Store, _ string) {
			err := s.db.update(func(tx *bbolt.Tx) error {
				_, err := tx.Bucket(metaBucket).CreateBucket([]byte("bucket"))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}, errForeign},
		{"the file was moved aside", func(t *testing.T, _ *Store, path string) {
			if err := errors.Join(os.Rename(path, path+".aside"), os.WriteFile(path, []byte("another"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, errMoved},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := afterPeak(t, path, smallPeak, 10)
			tt.prepare(t, s, path)
			before := s.db
			if result := compacted(t, s); !errors.Is(result.Err, tt.want) {
				t.Errorf("compaction %+v, want %v", result, tt.want)
			}
			if s.db != before || s.pause != 2*compactionPause || time.Until(s.notBefore) <= 0 {
				t.Errorf("the file was replaced %v, and the next compaction is in %v", s.db != before, time.Until(s.notBefore))
			}
			commit(t, s, put(published("a")))
			if got := load(t, s, time.Now()); len(got) < 11 || got["a"].ID == "" {
				t.Errorf("%d records, want all and a", len(got))
			}
		})
	}
}
