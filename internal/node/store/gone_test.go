package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// gone is the change that forgets a volume and leaves a tombstone.
func gone(r volume.Record) volume.Change {
	return volume.Change{ID: r.ID, Tombstone: &volume.Tombstone{Record: r, Gone: time.Unix(1_800_000_000, 0), Kept: time.Hour}}
}

// buried returns the IDs of all tombstones, the newest first, and checks that their numbers fall.
func buried(t testing.TB, s *Store, selection volume.GoneSelection) []string {
	t.Helper()
	ids, last := []string{}, uint64(0)
	for {
		page, err := s.Gone(selection)
		if err != nil {
			t.Fatal(err)
		}
		for _, stone := range page.Tombstones {
			if last != 0 && stone.Number >= last {
				t.Errorf("tombstone %d follows %d", stone.Number, last)
			}
			last = stone.Number
			ids = append(ids, string(stone.Record.ID))
		}
		if page.Next == 0 {
			return ids
		}
		selection.Below = page.Next
	}
}

func all(limit int) volume.GoneSelection {
	return volume.GoneSelection{Selection: volume.Selection{Limit: limit}}
}

// graveyard returns a store that keeps tombstones.
func graveyard(t testing.TB, path string, most int) *Store {
	t.Helper()
	s := openStore(t, path)
	s.KeepTombstones(most)
	return s
}

func TestTombstoneSaysEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := graveyard(t, path, 10)
	r := withPromise(retained("a", time.Now().Add(-time.Hour)), "why", true)
	r.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "Job", Name: "job"}
	commit(t, s, put(r))
	const kept = 61 * time.Minute
	want := volume.Tombstone{
		Record: r, Size: volume.Size{Bytes: 5, Inodes: 6}, Gone: time.Unix(r.Unpublished.Add(kept).Unix(), 0), Kept: kept,
		Reason: volume.ForInodes, Factor: 0.3, Free: volume.Size{Bytes: 7, Inodes: 8}, By: "ann", Why: "leaked key",
	}
	targets := want
	targets.Record = targets.Record.WithTarget(volume.Target{Path: "/t"})
	commit(t, s, volume.Change{ID: "a", Tombstone: &targets})
	want.Number = 1
	for range 2 {
		page, err := s.Gone(all(5))
		if err != nil || len(page.Tombstones) != 1 || page.Next != 0 {
			t.Fatalf("%+v, %v; want one", page, err)
		}
		got := page.Tombstones[0]
		if !got.Record.Unpublished.Round(0).Equal(r.Unpublished.Round(0)) {
			t.Errorf("unpublished %v, want %v", got.Record.Unpublished, r.Unpublished)
		}
		got.Record.Unpublished = r.Unpublished
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = graveyard(t, path, 10)
	}
}

// TestTombstoneIsOfAKnownVolume: there is one exactly if the record went, however often the same is
// committed, and whatever else is in the transaction.
func TestTombstoneIsOfAKnownVolume(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 10)
	commit(t, s, put(published("a")), put(published("b")), put(published("c")))
	commit(t, s, gone(published("a")), forget("b"), gone(published("unknown")))
	commit(t, s, gone(published("a")))
	commit(t, s, gone(published("c")), gone(published("c")), put(published("c")))
	if got := buried(t, s, all(10)); !slices.Equal(got, []string{"c", "a"}) {
		t.Errorf("tombstones of %v, want of c and a", got)
	}
	if got := names(load(t, s, time.Now())); got != "c" {
		t.Errorf("records of %q, want of c, which came again", got)
	}
}

func TestTombstoneRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := graveyard(t, path, 5)
	id := func(i int) volume.ID { return volume.ID(strconv.Itoa(i)) }
	var want []string
	pass := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			commit(t, s, put(published(string(id(i)))))
			commit(t, s, gone(published(string(id(i)))))
			want = slices.Insert(want, 0, string(id(i)))
		}
	}
	check := func(step string, most int) {
		t.Helper()
		want = want[:min(most, len(want))]
		for _, limit := range []int{1, 2, 100} {
			if got := buried(t, s, all(limit)); !slices.Equal(got, want) {
				t.Errorf("%s: tombstones of %v, want of %v", step, got, want)
			}
		}
	}
	pass(0, 3)
	check("not full", 5)
	pass(3, 12)
	check("full", 5)
	s.KeepTombstones(3)
	check("smaller", 3)
	pass(12, 13)
	check("smaller, and one more", 3)
	s.KeepTombstones(200)
	want = append(want, "9") // it has not left the file yet
	check("larger", 200)
	// More at once than there is room for.
	var comes, goes []volume.Change
	for i := 100; i < 400; i++ {
		comes, goes = append(comes, put(published(string(id(i))))), append(goes, gone(published(string(id(i)))))
		want = slices.Insert(want, 0, string(id(i)))
	}
	commit(t, s, comes...)
	commit(t, s, goes...)
	check("many at once", 200)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = graveyard(t, path, 200)
	check("after a restart", 200)
	s.KeepTombstones(0)
	check("none", 0)
	// What is surplus leaves the file with the next ones.
	pass(500, 505)
	if err := s.db.view(func(tx *bbolt.Tx) error {
		if n := tx.Bucket(goneBucket).Stats().KeyN; n != 0 {
			t.Errorf("%d tombstones are left in the file, want none", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestGoneSelects: as a list of retained volumes does, page by page.
func TestGoneSelects(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 10_000)
	began := time.Now().Add(-time.Hour)
	var comes, goes []volume.Change
	for i := range 3 * goneAtOnce {
		r := retained(strconv.Itoa(i), began.Add(time.Duration(i)*time.Millisecond))
		r.Namespace, r.PodName = fmt.Sprint("ns-", i%3), fmt.Sprint("pod-", i%1000)
		comes, goes = append(comes, put(r)), append(goes, gone(r))
	}
	commit(t, s, comes...)
	commit(t, s, goes...)
	for name, tt := range map[string]struct {
		selection volume.GoneSelection
		want      func(i int) bool
	}{
		"all":         {volume.GoneSelection{}, func(int) bool { return true }},
		"a namespace": {volume.GoneSelection{Selection: volume.Selection{Namespace: "ns-1"}}, func(i int) bool { return i%3 == 1 }},
		"a pod": {volume.GoneSelection{Selection: volume.Selection{Namespace: "ns-1", PodName: "pod-7"}},
			func(i int) bool { return i%3 == 1 && i%1000 == 7 }},
		"the oldest":   {volume.GoneSelection{ID: "0"}, func(i int) bool { return i == 0 }},
		"one":          {volume.GoneSelection{ID: "1234"}, func(i int) bool { return i == 1234 }},
		"none":         {volume.GoneSelection{Selection: volume.Selection{Namespace: "other"}}, func(int) bool { return false }},
		"from number":  {volume.GoneSelection{Below: 11}, func(i int) bool { return i < 10 }},
		"all and more": {volume.GoneSelection{Below: 1 << 63}, func(int) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{}
			for i := 3*goneAtOnce - 1; i >= 0; i-- {
				if tt.want(i) {
					want = append(want, strconv.Itoa(i))
				}
			}
			for _, limit := range []int{7, 1000, 3 * goneAtOnce} {
				tt.selection.Limit = limit
				if got := buried(t, s, tt.selection); !slices.Equal(got, want) {
					t.Errorf("limit %d: %d tombstones, want %d", limit, len(got), len(want))
				}
			}
			page, err := s.Gone(tt.selection)
			if err != nil || len(page.Tombstones) > goneAtOnce+goneTogether {
				t.Errorf("a page of %d, %v; want a bounded one", len(page.Tombstones), err)
			}
		})
	}
}

// TestGoneSurvives: tombstones outlive compactions, also one that runs while the bucket is made, and
// values that cannot be used are left out.
func TestGoneSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := afterPeak(t, path, smallPeak, 10)
	s.KeepTombstones(3)
	c := &compaction{changed: map[pairName]struct{}{}}
	var result Compaction
	place, err := s.placeOfCopy(1, &result)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	s.mu.Lock()
	s.compaction = c
	s.mu.Unlock()
	if c.db, err = newStore(place, path, s.db.file); err != nil {
		t.Fatal(err)
	}
	if err := s.copyAll(c); err != nil {
		t.Fatal(err)
	}
	// A failed transaction leaves its changes behind, and no bucket.
	whole := s.db.commit
	s.db.commit = func(fn func(*bbolt.Tx) error) error {
		return whole(func(tx *bbolt.Tx) error { return errors.Join(fn(tx), unix.EIO) })
	}
	if err := s.Commit([]volume.Change{gone(example(0))}); !errors.Is(err, unix.EIO) {
		t.Fatalf("Commit = %v, want EIO", err)
	}
	s.db.commit = whole
	if _, err := s.take(c, 1000); err != nil {
		t.Fatalf("take = %v", err)
	}
	for i := range 5 {
		commit(t, s, gone(example(i)))
	}
	old, err := s.replace(c, place)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.release(); err != nil {
		t.Fatal(err)
	}
	want := []string{string(example(4).ID), string(example(3).ID), string(example(2).ID)}
	if got := buried(t, s, all(10)); !slices.Equal(got, want) {
		t.Errorf("tombstones of %v, want of %v", got, want)
	}
	s.beginCompaction(1)
	s.background.Wait()
	if got := buried(t, s, all(10)); !slices.Equal(got, want) {
		t.Errorf("after another compaction tombstones of %v, want of %v", got, want)
	}
	if err := s.db.update(func(tx *bbolt.Tx) error { return tx.Bucket(goneBucket).Put(goneKey(4), []byte("broken")) }); err != nil {
		t.Fatal(err)
	}
	if got := buried(t, s, all(1)); !slices.Equal(got, []string{want[0], want[2]}) {
		t.Errorf("tombstones of %v, want of all but the one that is broken", got)
	}
}

// TestFullDiskForgetsWithoutATombstone: where there is room for the deletion only, it goes on.
func TestFullDiskForgetsWithoutATombstone(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 10)
	commit(t, s, put(published("a")), put(published("b")))
	whole := s.db.commit
	tries := 0
	s.db.commit = func(fn func(*bbolt.Tx) error) error {
		return whole(func(tx *bbolt.Tx) error {
			tries++
			if err := fn(tx); err != nil {
				return err
			}
			if tx.Bucket(goneBucket) != nil {
				return unix.ENOSPC
			}
			return nil
		})
	}
	commit(t, s, gone(published("a")), forget("b"))
	if got := names(load(t, s, time.Now())); got != "" || tries < 2 {
		t.Errorf("records of %q after %d tries, want none after two", got, tries)
	}
	s.db.commit = whole
	if got := buried(t, s, all(10)); len(got) != 0 {
		t.Errorf("tombstones of %v, want none", got)
	}
}

// TestTombstoneThatIsNotWritten: nor is anything else of its commit.
func TestTombstoneThatIsNotWritten(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 10)
	commit(t, s, put(published("a")))
	for name, change := range map[string]func(*volume.Tombstone){
		"of another volume": func(stone *volume.Tombstone) { stone.Record.ID = "b" },
		"by a terminal":     func(stone *volume.Tombstone) { stone.By = "\x1b[2J" },
		"two lines":         func(stone *volume.Tombstone) { stone.Why = "a\nb" },
		"long":              func(stone *volume.Tombstone) { stone.Why = strings.Repeat("y", volume.MaxHoldWhy+1) },
	} {
		forgotten := gone(published("a"))
		change(forgotten.Tombstone)
		if err := s.Commit([]volume.Change{forgotten}); !errors.Is(err, ErrInvalidRecord) {
			t.Errorf("%s: Commit = %v, want ErrInvalidRecord", name, err)
		}
	}
	if got := names(load(t, s, time.Now())); got != "a" {
		t.Errorf("records of %q, want of a", got)
	}
}

// TestEarlierVersionIgnoresTombstones: a version that wrote format 1, and did not know the bucket, forgot volumes beside
// it. The numbers go on afterwards.
func TestEarlierVersionIgnoresTombstones(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := graveyard(t, path, 10)
	commit(t, s, put(published("a")), put(published("b")), put(published("c")))
	commit(t, s, gone(published("a")))
	if err := s.db.update(func(tx *bbolt.Tx) error { // what such a version does
		return tx.Bucket(volumesBucket).Delete([]byte("b"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = graveyard(t, path, 10)
	commit(t, s, gone(published("c")))
	if got := buried(t, s, all(10)); !slices.Equal(got, []string{"c", "a"}) {
		t.Errorf("tombstones of %v, want of c and a", got)
	}
}

// BenchmarkForget forgets a volume, with an empty ring of tombstones, a full one, and without any.
func BenchmarkForget(b *testing.B) {
	for _, bench := range []struct {
		name         string
		most, buried int
	}{{"tombstones=none", 0, 0}, {"tombstones=0", 10_000, 0}, {"tombstones=10000", 10_000, 10_000}} {
		b.Run(bench.name, func(b *testing.B) {
			s := graveyard(b, filepath.Join(b.TempDir(), "store.db"), bench.most)
			fill(b, s, 1000)
			var comes, goes []volume.Change
			for i := range bench.buried {
				r := example(peak + i)
				comes, goes = append(comes, put(r)), append(goes, gone(r))
			}
			commit(b, s, comes...)
			commit(b, s, goes...)
			pages := func() int64 { stats := s.db.bolt.Stats(); return stats.TxStats.GetPageCount() }
			written := int64(0)
			for i := 0; b.Loop(); i++ {
				r := example(2*peak + i)
				commit(b, s, put(r))
				before := pages()
				commit(b, s, gone(r))
				written += pages() - before
			}
			b.ReportMetric(float64(written)/float64(b.N), "pages/forget")
		})
	}
}

// TestGoneByTheClockOfNow: when a volume went is told by the wall clock as it is now, within the boot and by a daemon
// that is started anew; of an earlier boot it is what the wall clock showed.
func TestGoneByTheClockOfNow(t *testing.T) {
	for name, tt := range map[string]struct {
		wrong time.Duration
		then  func(*machine)
		// off is by how much it is wrong.
		off time.Duration
	}{
		"nothing happens":                {0, func(m *machine) { m.run(time.Hour) }, 0},
		"set ahead":                      {-11 * time.Hour, func(m *machine) { m.wrong = 0; m.run(time.Hour) }, 0},
		"set back":                       {11 * time.Hour, func(m *machine) { m.run(time.Hour); m.wrong = 0 }, 0},
		"set, and started anew":          {-11 * time.Hour, func(m *machine) { m.wrong = 0; m.down(time.Hour) }, 0},
		"set while the daemon is down":   {-11 * time.Hour, func(m *machine) { m.stop(); m.wrong = 0; m.start() }, 0},
		"off for two days":               {0, func(m *machine) { m.reboot(48*time.Hour, 0) }, 0},
		"off for two days, then set":     {0, func(m *machine) { m.reboot(48*time.Hour, -time.Hour); m.wrong = 0; m.run(time.Hour) }, 0},
		"wrong before a reboot, and set": {-11 * time.Hour, func(m *machine) { m.reboot(time.Minute, 0) }, -11 * time.Hour},
	} {
		m := newMachine(t)
		m.s.KeepTombstones(9)
		m.run(time.Hour)
		m.wrong = tt.wrong
		r := retained("a", m.wall())
		commit(t, m.s, put(r))
		m.run(2 * time.Hour)
		r = load(t, m.s, m.wall())["a"]
		went := m.now
		commit(t, m.s, volume.Change{ID: "a", Tombstone: &volume.Tombstone{
			Record: r, Gone: time.Unix(m.wall().Unix(), 0), Kept: m.wall().Sub(r.Unpublished),
		}})
		tt.then(m)
		m.s.KeepTombstones(9)
		page, err := m.s.Gone(all(5))
		if err != nil || len(page.Tombstones) != 1 {
			t.Fatalf("%s: %+v, %v; want one", name, page, err)
		}
		if got := page.Tombstones[0].Gone; (got.Sub(went) - tt.off).Abs() > 2*time.Second {
			t.Errorf("%s: gone at %v, want %v and %v more", name, got, went, tt.off)
		}
	}
}
