package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store/boltfile"
)

func openStore(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(r volume.Record) volume.Change { return volume.Change{ID: r.ID, Record: &r} }
func forget(id volume.ID) volume.Change { return volume.Change{ID: id} }
func commit(t testing.TB, s *Store, changes ...volume.Change) {
	t.Helper()
	if err := s.Commit(changes); err != nil {
		t.Fatal(err)
	}
}

// loadAll returns all records.
func loadAll(s *Store, now time.Time) (records []volume.Record, damaged []Damaged, err error) {
	damaged, err = s.Load(now, func(r volume.Record) { records = append(records, r) })
	return records, damaged, err
}

// load returns all records by ID, and fails for damaged ones.
func load(t testing.TB, s *Store, now time.Time) map[volume.ID]volume.Record {
	t.Helper()
	records, damaged, err := loadAll(s, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(damaged) != 0 {
		t.Errorf("damaged: %v", damaged)
	}
	byID := make(map[volume.ID]volume.Record, len(records))
	for _, r := range records {
		byID[r.ID] = r
	}
	return byID
}

// names returns the sorted IDs.
func names(records map[volume.ID]volume.Record) string {
	var ids []string
	for id := range records {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func shorten(t testing.TB, d time.Duration) {
	old := lockTimeout
	lockTimeout = d
	t.Cleanup(func() { lockTimeout = old })
}

func published(id string) volume.Record {
	return volume.Record{ID: volume.ID(id), Pod: "pod-" + volume.PodUID(id), Phase: volume.Published}
}

func TestRoundTrip(t *testing.T) {
	now := time.Now()
	full := volume.Record{
		ID: "csi-1", Pod: "uid-1", Namespace: "batch", PodName: "job-1", Phase: volume.Published,
		Targets: []volume.Target{
			{Path: "/pods/a", ReadOnly: true, Flags: []string{"noexec", "nosuid"}},
			{Path: "/pods/b", MultiWriter: true, Leaving: true},
			{Path: "/pods/not \xff UTF-8"},
		},
	}
	tests := []volume.Record{
		full,
		{ID: "csi-2", Pod: "uid-2", Phase: volume.Publishing},
		{ID: "csi-3", Pod: "uid-3", Phase: volume.Unpublishing, Targets: full.Targets[:1]},
		{ID: "csi-4", Pod: "uid-4", Phase: volume.Retained, Unpublished: now.Add(-time.Hour), Lifespan: 12 * time.Hour},
		{ID: "csi-5", Pod: "uid-5", Phase: volume.Retained, Unpublished: now},
		{ID: "csi-6", Pod: "uid-6", Phase: volume.Deleting, Unpublished: now.Add(-time.Minute), Lifespan: time.Second},
		{ID: "csi-7", Pod: "uid-7", Phase: volume.Deleting},
		{ID: "a \xff b", Pod: "uid", Phase: volume.Published},
		{ID: volume.ID(strings.Repeat("x", 255)), Pod: volume.PodUID(strings.Repeat("y", 255)), Phase: volume.Published},
	}
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStoreAt(t, path, moment{now: now, boot: 1, boottime: int64(time.Hour)})
	for _, r := range tests {
		commit(t, s, put(r))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got := load(t, openStoreAt(t, path, moment{now: now, boot: 1, boottime: int64(time.Hour)}), now)
	if len(got) != len(tests) {
		t.Errorf("%d records, want %d", len(got), len(tests))
	}
	for _, want := range tests {
		// The same time also means the same monotonic reading.
		if r := got[want.ID]; !reflect.DeepEqual(r, want) {
			t.Errorf("loaded %#v\n  want %#v", r, want)
		}
	}
}

func TestCommitLastChangeWins(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	second := published("a")
	second.PodName = "second"
	commit(t, s, put(published("a")), put(published("b")), forget("b"), put(second), forget("c"), forget("never-known"))
	commit(t, s)
	got := load(t, s, time.Now())
	if names(got) != "a" || got["a"].PodName != "second" {
		t.Errorf("loaded %v, want the second record of a only", got)
	}
}

// TestCommitWithoutChangesWrites: it reports whether the next one can.
func TestCommitWithoutChangesWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	s := openStore(t, path)
	commit(t, s, put(published("a")))
	transaction := func() uint64 {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		m, err := boltfile.Newest(file, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		return m.Transaction
	}
	before := transaction()
	commit(t, s)
	if after := transaction(); after <= before {
		t.Errorf("transaction %d before, and %d after", before, after)
	}
	if records := load(t, s, time.Now()); len(records) != 1 {
		t.Errorf("records %v, want the one", records)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(nil); err == nil {
		t.Error("no error though the store is closed")
	}
}

func TestCommitRefusesWhatCannotBeRead(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	tests := []struct {
		name   string
		change func(*volume.Record)
		want   string
	}{
		{"ID leaves the directory", func(r *volume.Record) { r.ID = ".." }, "begins with a dot"},
		{"no ID", func(r *volume.Record) { r.ID = "" }, "is missing"},
		{"pod leaves the directory", func(r *volume.Record) { r.Pod = "../x" }, "pod UID contains a slash"},
		{"no pod", func(r *volume.Record) { r.Pod = "" }, "pod UID is missing"},
		{"no phase", func(r *volume.Record) { r.Phase = 0 }, "phase 0 does not exist"},
		{"negative lifespan", func(r *volume.Record) { r.Lifespan = -1 }, "lifespan -1ns is negative"},
		{"retained since never", func(r *volume.Record) { r.Phase = volume.Retained }, "without the time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := published("bad")
			tt.change(&bad)
			err := s.Commit([]volume.Change{put(published("good")), put(bad)})
			if !errors.Is(err, ErrInvalidRecord) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Commit = %v, want ErrInvalidRecord with %q", err, tt.want)
			}
		})
	}
	bad := published("a")
	if err := s.Commit([]volume.Change{{ID: "b", Record: &bad}}); !errors.Is(err, ErrInvalidRecord) {
		t.Errorf("Commit of another volume's record = %v, want ErrInvalidRecord", err)
	}
	if got := load(t, s, time.Now()); len(got) != 0 {
		t.Errorf("a refused commit left %v", got)
	}
}

// TestCommitIsAtomic: a commit fails after it applied its first change.
func TestCommitIsAtomic(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	commit(t, s, put(published("old")))
	long := volume.ID(strings.Repeat("x", bbolt.MaxKeySize+1))
	err := s.update(func(tx transaction) error {
		return errors.Join(tx.set(volumesBucket, []byte("old"), nil), tx.set(volumesBucket, []byte(long), []byte("x")))
	})
	if err == nil {
		t.Fatal("the commit succeeded")
	}
	if got := load(t, s, time.Now()); names(got) != "old" {
		t.Errorf("a failed commit left %q, want old", names(got))
	}
	commit(t, s, put(published("new")))
}

func TestTimesRunOnTheMonotonicClock(t *testing.T) {
	now := time.Now()
	since1970 := time.Duration(now.UnixNano() - 1)
	tests := []struct {
		name string
		boot uint64
		// before is for a time before 1970.
		before time.Duration
	}{
		{"with the time since the boot", 1, maxAge},
		{"with the wall clock alone", 0, since1970},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := openStoreAt(t, filepath.Join(t.TempDir(), "store.db"), moment{now: now, boot: tt.boot, boottime: 1})
			commit(t, s,
				put(retained("past", now.Add(-time.Minute).Round(0))),
				put(retained("future", now.Add(time.Hour).Round(0))),
				put(retained("far-future", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))),
				put(retained("epoch", time.Unix(0, 1))),
				put(retained("before", time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC))),
			)
			got := load(t, s, now)
			// == compares the monotonic reading too.
			for id, want := range map[volume.ID]time.Time{
				"past":       now.Add(-time.Minute),
				"future":     now,
				"far-future": now,
				"epoch":      now.Add(-since1970),
				"before":     now.Add(-tt.before),
			} {
				if got[id].Unpublished != want {
					t.Errorf("%s: unpublished %v, want %v", id, got[id].Unpublished, want)
				}
			}
		})
	}
}

func TestNewFileIsCompleteBeforeItHasItsName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	// An interrupted first start left this.
	if err := os.WriteFile(path+newSuffix, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path)
	commit(t, s, put(published("a")))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "store.db" {
		t.Errorf("directory has %v, want store.db only", entries)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestOpenNeedsTheDirectory(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "missing", "store.db"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
}

func TestLocked(t *testing.T) {
	shorten(t, 50*time.Millisecond)
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	_, err := Open(path)
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("second Open = %v, want ErrLocked", err)
	}
	want := path + " is locked by another process: another Katbox daemon runs on this working directory; stop it first"
	if err.Error() != want {
		t.Errorf("message %q\n   want %q", err, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, path)
}

// TestOpenAtOnce starts several daemons on an empty directory.
func TestOpenAtOnce(t *testing.T) {
	shorten(t, 50*time.Millisecond)
	for range 20 {
		path := filepath.Join(t.TempDir(), "store.db")
		type result struct {
			s   *Store
			err error
		}
		results := make(chan result)
		for range 4 {
			go func() {
				s, err := Open(path)
				if err == nil {
					err = s.Commit([]volume.Change{put(published("a"))})
				}
				results <- result{s, err}
			}()
		}
		winners := 0
		for range 4 {
			r := <-results
			switch {
			case r.err == nil:
				winners++
				defer r.s.Close()
			case !errors.Is(r.err, ErrLocked):
				t.Errorf("Open = %v, want ErrLocked", r.err)
			}
		}
		if winners != 1 {
			t.Errorf("%d daemons got the store, want 1", winners)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	if err := s.update(func(tx transaction) error {
		return tx.set(metaBucket, formatKey, strconv.AppendInt(nil, formatVersion+1, 10))
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first refusal lets go of the lock
		_, err := Open(path)
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "do not downgrade") {
			t.Fatalf("Open = %v, want ErrNewer", err)
		}
	}
}

// TestNoStoreOfKatbox: a database that lacks what each of ours has is none, and is not begun anew.
func TestNoStoreOfKatbox(t *testing.T) {
	for name, spoil := range map[string]func(tx transaction) error{
		"format 0":        func(tx transaction) error { return tx.set(metaBucket, formatKey, []byte("0")) },
		"format -1":       func(tx transaction) error { return tx.set(metaBucket, formatKey, []byte("-1")) },
		"no number":       func(tx transaction) error { return tx.set(metaBucket, formatKey, []byte("one")) },
		"no format":       func(tx transaction) error { return tx.set(metaBucket, formatKey, nil) },
		"without volumes": func(tx transaction) error { return tx.tx.DeleteBucket(volumesBucket) },
		"without meta":    func(tx transaction) error { return tx.tx.DeleteBucket(metaBucket) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := openStore(t, path)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bbolt.Tx) error { return spoil(transaction{tx: tx}) })
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(path); !errors.Is(err, ErrDamaged) {
				t.Errorf("Open = %v, want ErrDamaged", err)
				if err == nil {
					_ = s.Close()
				}
			}
		})
	}
}

// BenchmarkCommit commits a group of changes, each of another volume. What a change costs is that
// divided by their number.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("changes=%d", n), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "store.db"))
			fill(b, s, 10_000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				changes := make([]volume.Change, n)
				for j := range changes {
					changes[j] = put(example((i*n + j) % 10_000))
				}
				commit(b, s, changes...)
			}
		})
	}
}

func BenchmarkLoad100k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "store.db")
	s := openStore(b, path)
	fill(b, s, 100_000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			if err := openStore(b, path).Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s = openStore(b, path)
	b.Run("Load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Load(time.Now(), func(volume.Record) {}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// example returns a record as a batch cluster has them.
func example(i int) volume.Record {
	return volume.Record{
		// Multiplied by an odd number, so that the keys come in no order.
		ID:          volume.ID(fmt.Sprintf("csi-%064x", uint64(i)*0x9E3779B97F4A7C15)),
		Pod:         volume.PodUID(fmt.Sprintf("8f2c4f6e-0000-4000-8000-%012x", i)),
		Namespace:   "batch",
		PodName:     fmt.Sprintf("nightly-job-%d", i),
		Phase:       volume.Retained,
		Unpublished: time.Now(),
		Lifespan:    12 * time.Hour,
	}
}

func fill(t testing.TB, s *Store, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		var changes []volume.Change
		for i := from; i < min(from+1000, n); i++ {
			changes = append(changes, put(example(i)))
		}
		commit(t, s, changes...)
	}
}

// TestSlowReadsLoseNothing: a batch ends after readTime, and never before its first pair.
func TestSlowReadsLoseNothing(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	fill(t, s, 20)
	reads, seen := 0, map[string]bool{}
	for after := []byte(nil); ; reads++ {
		last, err := s.db.each(volumesBucket, after, func(key, _ []byte) {
			seen[string(key)] = true
			for began := time.Now(); time.Since(began) <= readTime; {
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if last == nil {
			break
		}
		after = last
	}
	if len(seen) != 20 || reads != 20 {
		t.Errorf("%d records in %d reads, want 20 in 20", len(seen), reads)
	}
}
