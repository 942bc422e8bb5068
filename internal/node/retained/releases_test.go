package retained

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestReleasesCostWhatRetainedVolumesDo: a person, or a program, that gives each of many volumes another reason takes
// no memory by that. Pins keep who wanted them: there are few.
func TestReleasesCostWhatRetainedVolumesDo(t *testing.T) {
	const volumes = 5 * mostReleaseTexts
	q := &Index{}
	why := func(i int) string { return fmt.Sprint(i, strings.Repeat("y", volume.MaxHoldWhy-10)) }
	hold := func(i int, kind volume.HoldKind) volume.Record {
		r := retained(fmt.Sprint(kind, i), time.Duration(i), 100*time.Hour)
		r.Hold = volume.Hold{Kind: kind, For: time.Hour, By: fmt.Sprint("user-", i), Why: why(i)}
		return r
	}
	for i := range volumes {
		q.Put(hold(i, volume.Released))
	}
	const pinned = 100
	for i := range pinned {
		q.Put(hold(volumes+i, volume.Pinned))
	}
	bytes := 0
	for texts := range q.holds {
		bytes += len(texts.by) + len(texts.why)
	}
	if n := len(q.holds); n > mostReleaseTexts+pinned+1 || bytes > 4<<20 {
		t.Errorf("%d texts with %d bytes are kept of %d releases", n, bytes, volumes)
	}
	for i := range volumes {
		want := hold(i, volume.Released)
		got, ok := take(q, want.ID)
		without := want.Hold
		without.By, without.Why = "", ""
		if !ok || got.Hold != want.Hold && got.Hold != without {
			t.Fatalf("volume %d: %+v", i, got.Hold)
		}
	}
	for i := range pinned {
		want := hold(volumes+i, volume.Pinned)
		if got, ok := take(q, want.ID); !ok || got.Hold != want.Hold {
			t.Fatalf("pin %d: %+v", i, got.Hold)
		}
	}
	checkEmpty(t, q)
	again := hold(volumes, volume.Released)
	q.Put(again)
	if got, _ := q.Look(again.ID); got.Hold != again.Hold {
		t.Errorf("there is room again: %+v", got.Hold)
	}
}
