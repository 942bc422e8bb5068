package nodehold

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC)

// ago is a time before now.
func ago(d time.Duration) time.Time { return now.Add(-d) }

// ended is a hold that began, and ended, so long ago.
func ended(from, to time.Duration) span { return span{ago(from), ago(to)} }

// TestDecide: when a node is held, and what of it is noted.
func TestDecide(t *testing.T) {
	since := func(d time.Duration, past ...span) mark {
		return mark{since: ago(d), set: []string{DoNotDisrupt}, past: past}
	}
	past := func(past ...span) mark { return mark{past: past} }
	waits := func(newest time.Duration) want { return want{heard: true, volumes: 1, newest: ago(newest)} }
	nothing := want{heard: true}
	earlier, long := ended(time.Hour, 50*time.Minute), ended(30*time.Minute, 11*time.Minute)
	across := ended(window+10*time.Minute, window-10*time.Minute)
	for name, tt := range map[string]struct {
		mark mark
		want want
		next mark
	}{
		"nothing waits":                      {mark{}, nothing, mark{}},
		"it is not heard":                    {mark{}, want{volumes: 1, newest: now}, mark{}},
		"a volume waits":                     {mark{}, waits(0), mark{since: now}},
		"it was retained nine minutes ago":   {mark{}, waits(9 * time.Minute), mark{since: now}},
		"ten minutes ago":                    {mark{}, waits(longest - margin), mark{}},
		"it is not known when":               {mark{}, want{heard: true, volumes: 1}, mark{}},
		"it goes on waiting":                 {since(5 * time.Minute), waits(5 * time.Minute), since(5 * time.Minute)},
		"until its time is over":             {since(5 * time.Minute), waits(longest), past(ended(5*time.Minute, 0))},
		"another one has come":               {since(15 * time.Minute), waits(time.Minute), since(15 * time.Minute)},
		"for twenty minutes":                 {since(most - margin), waits(0), past(ended(most-margin, 0))},
		"the last one is up":                 {since(5 * time.Minute), nothing, past(ended(5*time.Minute, 0))},
		"at once":                            {since(3 * time.Second), nothing, past(ended(3*time.Second, 3*time.Second-least))},
		"a node that is not heard stays":     {since(5 * time.Minute), want{}, since(5 * time.Minute)},
		"for ten minutes":                    {since(longest), want{}, past(ended(longest, 0))},
		"it was held before, and may be":     {past(earlier), waits(0), mark{since: now, past: []span{earlier}}},
		"it was held too long":               {past(long), waits(0), past(long)},
		"with what was before too long":      {since(10*time.Minute, earlier), waits(0), past(earlier, ended(10*time.Minute, 0))},
		"what was two hours ago is over":     {past(ended(window+time.Hour, window)), nothing, mark{}},
		"and counts as far as it is within":  {past(across), waits(0), mark{since: now, past: []span{across}}},
		"the other replica's clock is ahead": {since(-30 * time.Second), waits(0), since(-30 * time.Second)},
		"the clock was set back":             {since(-time.Hour, ended(-2*time.Hour, -90*time.Minute)), nothing, mark{}},
		"and a volume waits":                 {since(-time.Hour), waits(0), mark{}},
	} {
		if next := decide(tt.mark, tt.want, now.Add(300*time.Millisecond)); !next.equal(tt.next) {
			t.Errorf("%s: the mark is %v, want %v", name, next, tt.next)
		}
	}
}

// TestBounds: whatever a node says, it is held 20 minutes in two hours at most, its mark stays short, and what is noted is
// read as it was written.
func TestBounds(t *testing.T) {
	const every = 2 * time.Second
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var m mark
		held := make([]bool, 6*time.Hour/every)
		within := 0 // how often it was held in the last two hours
		w := want{heard: true}
		for i := range held {
			at := now.Add(time.Duration(i) * every)
			if chance.IntN(20) == 0 {
				w.volumes = chance.IntN(3)
			}
			if chance.IntN(20) == 0 {
				w.newest = at
			}
			if chance.IntN(200) == 0 {
				w.heard = !w.heard
			}
			before := m
			m = decide(before, w, at)
			if held[i] = m.held(); held[i] {
				within++
			}
			if first := i - int(window/every); first >= 0 && held[first] {
				within--
			}
			if time.Duration(within)*every > most {
				t.Fatalf("seed %d: after %d looks it was held in %d of those of two hours", seed, i, within)
			}
			if m.equal(before) {
				continue
			}
			if read, err := parse(m.String()); err != nil || !read.equal(m) {
				t.Fatalf("seed %d: %v is read as %v, %v", seed, m, read, err)
			}
		}
		if !slices.Contains(held, true) {
			t.Errorf("seed %d: it was never held", seed)
		}
	}
}

// TestParse: what cannot be what a gateway has written.
func TestParse(t *testing.T) {
	for text, says := range map[string]string{
		"x":                                     "cannot be read",
		strings.Repeat(" ", 5000):               "5000 bytes",
		`{"since":"yesterday"}`:                 "cannot be read",
		`{"past":["2026-11-30T16:00:00Z/-1s"]}`: "took",
		`{"past":["2026-11-30T16:00:00Z/3h"]}`:  "took",
		`{"past":["2026-11-30T16:00:00Z"]}`:     "took",
		`{"past":["/1s"]}`:                      "cannot be read",
		`{"past":[` + strings.Repeat(`"2026-11-30T16:00:00Z/1m",`, 40) + `""]}`: "41 holds",
	} {
		if m, err := parse(text); err == nil || !strings.Contains(err.Error(), says) || !m.empty() {
			t.Errorf("%.40s: %v, %v, want %q", text, m, err, says)
		}
	}
	m, err := parse(`{"since":"2026-11-30T16:00:00.5Z","set":["kubernetes.io/arch","` + DoNotDisrupt + `"]}`)
	if err != nil || !m.equal(mark{since: now, set: []string{DoNotDisrupt}}) {
		t.Errorf("a mark with another annotation: %v, %v", m, err)
	}
}

// FuzzParse: what is read is written so that it is read again.
func FuzzParse(f *testing.F) {
	f.Add(mark{since: now, set: Holding(), past: []span{ended(time.Hour, 50*time.Minute)}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parse(text)
		if err != nil {
			return
		}
		if again, err := parse(m.String()); err != nil || !again.equal(m) {
			t.Errorf("%q is %v, which is read as %v, %v", text, m, again, err)
		}
	})
}
