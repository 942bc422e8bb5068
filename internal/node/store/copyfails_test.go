package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestChangesThatTheCopyRefuses: what cannot be written to the copy ends the compaction, while it
// catches up as well as with the last changes. A copy that lacks them would lose records.
func TestChangesThatTheCopyRefuses(t *testing.T) {
	for name, last := range map[string]bool{"while it catches up": false, "with the last changes": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			s := afterPeak(t, path, smallPeak, 10)
			c := &compaction{changed: map[pairName]struct{}{}}
			place, err := s.placeOfCopy(1, &Compaction{})
			if err != nil {
				t.Fatal(err)
			}
			defer place.Close()
			if c.db, err = newStore(place, path, s.db.file); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			s.compaction = c
			s.mu.Unlock()
			if err := s.copyAll(c); err != nil {
				t.Fatal(err)
			}
			var changes []volume.Change
			for i := range lastChanges + 1 {
				changes = append(changes, put(example(peak+i)))
			}
			commit(t, s, changes...)
			if last {
				if err := s.catchUp(c); err != nil {
					t.Fatal(err)
				}
				commit(t, s, put(published("last")))
			}
			c.db.commit = func(func(*bbolt.Tx) error) error { return unix.EIO }
			if last {
				_, err = s.replace(c, place)
			} else {
				err = s.catchUp(c)
			}
			if !errors.Is(err, unix.EIO) {
				t.Errorf("%v, want %v", err, unix.EIO)
			}
			if got := load(t, s, time.Now()); len(got) < 10+len(changes) {
				t.Errorf("%d records, want all %d and more", len(got), 10+len(changes))
			}
			s.mu.Lock()
			s.compaction = nil
			s.mu.Unlock()
			if err := c.db.close(); err != nil {
				t.Error(err)
			}
		})
	}
}
