package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// buryOf forgets volumes of a namespace, some in each commit.
func buryOf(t testing.TB, s *Store, namespace string, from, to int) {
	t.Helper()
	const together = 50
	for ; from < to; from += together {
		var comes, goes []volume.Change
		for i := from; i < min(from+together, to); i++ {
			r := published(namespace + "-" + strconv.Itoa(i))
			r.Namespace = namespace
			comes, goes = append(comes, put(r)), append(goes, gone(r))
		}
		commit(t, s, comes...)
		commit(t, s, goes...)
	}
}

// kept returns how many tombstones of a namespace are listed.
func kept(t testing.TB, s *Store, namespace string) int {
	t.Helper()
	selection := all(30)
	selection.Namespace = namespace
	return len(buried(t, s, selection))
}

// inFile returns how many tombstones the file has.
func inFile(t testing.TB, s *Store) (n int) {
	t.Helper()
	if err := s.db.view(func(tx *bbolt.Tx) error {
		n = tx.Bucket(goneBucket).Stats().KeyN
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTombstonesOfOthersStay: however many volumes of one namespace go, what is remembered of others stays, after
// a restart too; and that namespace has the rest.
func TestTombstonesOfOthersStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	const most = 100
	s := graveyard(t, path, most)
	buryOf(t, s, "quiet", 0, 10)
	buryOf(t, s, "other", 0, 20)
	for round := range 3 {
		buryOf(t, s, "flood", round*1000, round*1000+500)
		want := map[string]int{"quiet": 10, "other": 20, "flood": most - 30, "": most}
		for namespace, want := range want {
			if got := kept(t, s, namespace); got != want {
				t.Errorf("round %d: %d tombstones of %q, want %d", round, got, namespace, want)
			}
		}
		if n := inFile(t, s); n > most+surplusTogether {
			t.Errorf("round %d: the file has %d", round, n)
		}
		newest := fmt.Sprintf("flood-%d", round*1000+499)
		if got := buried(t, s, all(1)); got[0] != newest {
			t.Errorf("round %d: the newest is %s, want %s", round, got[0], newest)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = graveyard(t, path, most)
	}
	// Each has its share: those who have more lose their oldest.
	buryOf(t, s, "other", 100, 120)
	buryOf(t, s, "late", 0, 40)
	if got := kept(t, s, "quiet"); got != 10 {
		t.Errorf("%d tombstones of a namespace with less than its share, want 10", got)
	}
	if got := kept(t, s, "late"); got != 40 {
		t.Errorf("%d tombstones of those that went last, want 40", got)
	}
}

// TestManyNamespacesGo: namespaces that are long gone keep no more than half of what is remembered.
func TestManyNamespacesGo(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 100)
	for i := range 300 {
		buryOf(t, s, fmt.Sprint("pr-", i), 0, 1)
	}
	buryOf(t, s, "ci", 0, 200)
	if got := kept(t, s, "ci"); got < 50 {
		t.Errorf("%d tombstones of a namespace that is still there, want half of all", got)
	}
	if got := kept(t, s, ""); got != 100 {
		t.Errorf("%d tombstones, want 100", got)
	}
	if n := len(s.ring.named); n > 51 {
		t.Errorf("%d namespaces are known", n)
	}
}

// TestRingAfterAFailure: a commit of which nobody knows whether it is there leaves a ring that agrees with the file.
func TestRingAfterAFailure(t *testing.T) {
	s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 4)
	buryOf(t, s, "a", 0, 3)
	commit(t, s, put(published("lost")))
	failingLastSync(t, s.db)
	failing := true
	onSync(t, func() error {
		if failing {
			return unix.EIO
		}
		return nil
	})
	if err := s.Commit([]volume.Change{gone(published("lost"))}); !errors.Is(err, unix.EIO) {
		t.Fatalf("Commit = %v, want EIO", err)
	}
	failing = false
	buryOf(t, s, "a", 10, 12)
	got := buried(t, s, all(10))
	if want := []string{"a-11", "a-10", "lost", "a-2"}; !slices.Equal(got, want) {
		t.Errorf("tombstones of %v, want of %v", got, want)
	}
	for i := range 5 {
		buryOf(t, s, "a", 20+i, 21+i)
	}
	if n := inFile(t, s); n > 5 {
		t.Errorf("the file has %d tombstones", n)
	}
}

// TestRingOfDamagedTombstones: those that cannot be read have the share of a namespace.
func TestRingOfDamagedTombstones(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := graveyard(t, path, 10)
	buryOf(t, s, "a", 0, 10)
	if err := s.db.update(func(tx *bbolt.Tx) error {
		for number := range uint64(5) {
			if err := tx.Bucket(goneBucket).Put(goneKey(number+1), []byte("broken")); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = graveyard(t, path, 10)
	buryOf(t, s, "a", 10, 30)
	got := buried(t, s, all(100))
	other := func(id string) bool { return !strings.HasPrefix(id, "a-") }
	if n := inFile(t, s); len(got) < 5 || slices.ContainsFunc(got, other) || n > 10+surplusTogether {
		t.Errorf("tombstones of %v, and %d in the file", got, n)
	}
}

// BenchmarkKeepTombstones is what a start costs.
func BenchmarkKeepTombstones(b *testing.B) {
	const most = 10_000
	s := graveyard(b, filepath.Join(b.TempDir(), "store.db"), most)
	for i := range 20 {
		buryOf(b, s, fmt.Sprint("ns-", i), 0, most/20)
	}
	for b.Loop() {
		s.KeepTombstones(most)
	}
}
