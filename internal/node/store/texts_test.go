package store

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestTextsOfAReleaseStay: a record that does not say who released its volume, and why, leaves what is there, and its
// tombstone says it. Every other decision is what it says.
func TestTextsOfAReleaseStay(t *testing.T) {
	released := volume.Hold{Kind: volume.Released, For: time.Hour, By: "ann", Why: "done"}
	bare := volume.Hold{Kind: volume.Released, For: 2 * time.Hour}
	filled := volume.Hold{Kind: volume.Released, For: 2 * time.Hour, By: "ann", Why: "done"}
	others := volume.Hold{Kind: volume.Released, By: "bob"}
	for name, tt := range map[string]struct {
		before, next, want volume.Hold
		reason             volume.Reason
		by, wantBy         string
	}{
		"released":          {released, bare, filled, volume.ForReleased, "", "ann"},
		"expired":           {released, bare, filled, volume.Expired, "", ""},
		"purged":            {released, bare, filled, volume.Purged, "bob", "bob"},
		"by somebody else":  {released, others, others, volume.ForReleased, "bob", "bob"},
		"taken back":        {released, volume.Hold{}, volume.Hold{}, volume.Expired, "", ""},
		"pinned before":     {volume.Hold{Kind: volume.Pinned, By: "ann", Why: "a bug"}, bare, bare, volume.ForReleased, "", ""},
		"nothing was there": {volume.Hold{}, bare, bare, volume.ForReleased, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := graveyard(t, filepath.Join(t.TempDir(), "store.db"), 10)
			r := retained("a", time.Now())
			r.Hold = tt.before
			commit(t, s, put(r))
			r.Hold = tt.next
			commit(t, s, put(r))
			if got := load(t, s, time.Now())["a"].Hold; got != tt.want {
				t.Errorf("the record has %+v, want %+v", got, tt.want)
			}
			last := gone(r)
			last.Tombstone.Reason, last.Tombstone.By = tt.reason, tt.by
			commit(t, s, last)
			page, err := s.Gone(all(1))
			if err != nil || len(page.Tombstones) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			if stone := page.Tombstones[0]; stone.By != tt.wantBy || stone.Record.Hold != tt.want {
				t.Errorf("by %q, %+v; want by %q, %+v", stone.By, stone.Record.Hold, tt.wantBy, tt.want)
			}
		})
	}
}
