package check

import (
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// at is a moment so many seconds into a test.
func at(seconds float64) time.Time {
	return time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after float64
		partialSince  float64
		found         story.Verb
		broken        string
	}{
		{"there in time", 5, 5, 0, story.Whole, ""},
		{"there in its last moments", 10, 10.5, 0, story.Whole, ""},
		{"there late, but tolerated", 15.9, 17, 0, story.Whole, ""},
		{"there for too long", 16.1, 16.2, 0, story.Whole, "at the latest"},
		{"gone early", 9.8, 9.9, 0, story.Gone, "at the earliest"},
		{"gone, perhaps just in time", 9.9, 10.1, 0, story.Gone, ""},
		{"gone in time", 12, 12, 0, story.Gone, ""},
		{"gone late, nobody saw when", 30, 30, 0, story.Gone, ""},
		{"partial, for the first time", 11, 11, 0, story.Partial, ""},
		{"partial for a moment", 11.2, 11.3, 11, story.Partial, ""},
		{"partial for longer", 11.4, 11.5, 11, story.Partial, "not whole"},
		{"partial for longer, and early", 5.4, 5.5, 5, story.Partial, "not whole"},
		{"gone after it was partial", 11.2, 11.3, 11, story.Gone, ""},
	} {
		c := &Checker{cfg: Config{Timeline: &history.Timeline{}}}
		r := &retained{from: at(0), to: at(1), earliest: at(10), deadline: at(11), tolerance: 5 * time.Second}
		if test.partialSince > 0 {
			r.partialSince = at(test.partialSince)
		}
		got := c.judge(r, at(test.before), at(test.after), test.found, nil)
		if test.broken == "" && got != "" || !strings.Contains(got, test.broken) {
			t.Errorf("%s: %q, want one with %q", test.name, got, test.broken)
		}
	}
}

func TestNextLook(t *testing.T) {
	soon := at(10).Add(-dueInterval)
	for _, test := range []struct {
		name      string
		now       time.Time
		seen      bool
		wantExact time.Time
	}{
		{"not seen yet", at(9), false, at(9).Add(dueInterval)},
		{"seen", at(9), true, soon},
		{"seen, and near", at(9.95), true, at(9.95).Add(dueInterval)},
		{"late", at(12), true, at(12).Add(dueInterval)},
	} {
		r := &retained{from: at(0), to: at(0), earliest: at(10), deadline: at(10), seen: test.seen}
		if got := r.nextLook(test.now); !got.Equal(test.wantExact) {
			t.Errorf("%s: %s, want %s", test.name, got, test.wantExact)
		}
	}
}

func TestEvictedTooSoon(t *testing.T) {
	gone := &retained{from: at(10), to: at(10.1)}
	for _, test := range []struct {
		name             string
		olderTo          float64
		earliest         float64
		goneBy, lookFrom float64
		want             bool
	}{
		{"older is there", 5, 40, 20, 21, true},
		{"not clearly older", 9.5, 40, 20, 21, false},
		{"younger", 12, 40, 20, 21, false},
		{"older was there before", 5, 40, 20, 19.9, false},
		{"older is late", 5, 20.5, 20, 21, false},
	} {
		older := &retained{from: at(0), to: at(test.olderTo), earliest: at(test.earliest), deadline: at(test.earliest)}
		if got := evictedTooSoon(gone, older, at(test.goneBy), at(test.lookFrom)); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring[int]
	if got := r.next(3); len(got) != 0 {
		t.Errorf("an empty ring has %v", got)
	}
	for i := range 5 {
		r.add(i)
	}
	r.add(3) // is there already
	seen := make(map[int]int)
	for range 10 {
		for _, i := range r.next(2) {
			seen[i]++
		}
	}
	for i := range 5 {
		if seen[i] != 4 {
			t.Errorf("%d was looked at %d times in 20 looks, want 4", i, seen[i])
		}
	}
	if !r.remove(1) || r.remove(1) {
		t.Error("remove does not tell whether it was there")
	}
	if got := r.next(10); len(got) != 4 {
		t.Errorf("all but one are %v", got)
	}
}
