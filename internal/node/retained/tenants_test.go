package retained

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestFairTakesFromTheHeaviest: a namespace that retains nine tenths loses its oldest volumes, until
// it retains no more than the other, though that one's are older.
func TestFairTakesFromTheHeaviest(t *testing.T) {
	for _, scarcer := range []volume.Reason{volume.ForBytes, volume.ForInodes} {
		q := &Index{Fair: true}
		var want []string
		for i := range 90 {
			put(q, fmt.Sprint("heavy-", i), "heavy", time.Duration(100+i)*time.Minute, volume.Size{Bytes: sector, Inodes: 1})
			if i < 80 {
				want = append(want, fmt.Sprint("heavy-", i))
			}
		}
		for i := range 10 {
			put(q, fmt.Sprint("light-", i), "light", time.Duration(i)*time.Minute, volume.Size{Bytes: sector, Inodes: 1})
		}
		// Both retain the same now, so that age decides.
		want = append(want, "light-0", "heavy-80", "light-1")
		var got []string
		for range want {
			c, ok := q.Early(epoch.Add(10*time.Hour), 0.01, scarcer)
			if !ok || c.At.After(epoch.Add(10*time.Hour)) {
				t.Fatalf("%s: nothing goes after %v", scarcer, got)
			}
			got = append(got, string(takeChosen(q, c).ID))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: gone are %v\nwant %v", scarcer, got, want)
		}
	}
}

// put adds a volume of a namespace that was measured.
func put(q *Index, id, namespace string, after time.Duration, size volume.Size) {
	r := retained(id, after, 100*time.Hour)
	r.Namespace = namespace
	q.Put(r)
	q.Measured(r.ID, r.Unpublished, size)
}

// TestFairCountsWhatIsScarcer: one namespace has many bytes, another many inodes.
func TestFairCountsWhatIsScarcer(t *testing.T) {
	q := &Index{Fair: true}
	put(q, "bytes", "a", time.Hour, volume.Size{Bytes: 1 << 30, Inodes: 1})
	put(q, "inodes", "b", time.Hour, volume.Size{Bytes: 4096, Inodes: 1000})
	put(q, "old", "c", 0, volume.Size{Bytes: 4096, Inodes: 1})
	for scarcer, want := range map[volume.Reason]volume.ID{volume.ForBytes: "bytes", volume.ForInodes: "inodes"} {
		c, _ := q.Early(always, 0, scarcer)
		if id := c.ID(); id != want {
			t.Errorf("for want of %s %s goes, want %s", scarcer, id, want)
		}
	}
}

// TestFairWithOneNamespace: the order is that of the oldest.
func TestFairWithOneNamespace(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		fair, oldest := &Index{Fair: true, MinLifespan: time.Hour}, &Index{MinLifespan: time.Hour}
		m := newModel(fair)
		for i := range 50 {
			a := anyVolume(rng, volume.ID(fmt.Sprint("v", i)), []string{"the only one"})
			m.both(fair, a)
			m.both(oldest, a)
		}
		for _, factor := range []float64{0.5, 0.1, 0} {
			a, b := drainAt(fair, epoch.Add(10*time.Hour), factor, true), drainAt(oldest, epoch.Add(10*time.Hour), factor, true)
			if !slices.Equal(a, b) {
				t.Fatalf("seed %d, factor %v: a fair queue loses %v\nanother %v", seed, factor, a, b)
			}
		}
	}
}

// TestSurplusAgainstModel: of each namespace that retains too much the first one goes, and of no
// other.
func TestSurplusAgainstModel(t *testing.T) {
	limits := map[string]volume.Size{"a": {Bytes: 1 << 30}, "b": {Inodes: 3 << 20}, "c": {Bytes: 1 << 30, Inodes: 2 << 20}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		q := &Index{
			Fair: seed%2 == 0, MinLifespan: time.Duration(seed%3) * time.Hour,
			MaxRetained: func(namespace string) volume.Size { return limits[namespace] },
		}
		m := newModel(q)
		for step := range 300 {
			id := volume.ID(fmt.Sprint("v", rng.IntN(40)))
			switch rng.IntN(3) {
			case 0, 1:
				m.both(q, anyVolume(rng, id, []string{"", "a", "b", "c", "unlimited"}))
			case 2:
				take(q, id)
				delete(m.volumes, id)
			}
			now := epoch.Add(10 * time.Hour)
			q.Recheck()
			want := m.surplus(now)
			c, ok := q.Surplus(now)
			if ok != (len(want) > 0) || ok && !slices.Contains(want, c.ID()) {
				t.Fatalf("seed %d, step %d: %v goes, %t, want one of %v", seed, step, c, ok, want)
			}
			if ok && rng.IntN(2) == 0 {
				delete(m.volumes, takeChosen(q, c).ID)
			}
		}
	}
}

// TestSurplusComesFromMeasuring: a volume counts when it is measured, and without a further event.
func TestSurplusComesFromMeasuring(t *testing.T) {
	asked := 0
	limit := volume.Size{Bytes: 10 * sector}
	q := &Index{MaxRetained: func(string) volume.Size { asked++; return limit }}
	for i := range 5 {
		r := retained(fmt.Sprint("v", i), time.Duration(i), time.Hour)
		r.Namespace = "n"
		q.Put(r)
	}
	if c, ok := q.Surplus(always); ok || asked > 0 {
		t.Errorf("%v goes and nothing was measured; asked %d times", c, asked)
	}
	for i := range 3 {
		q.Measured(volume.ID(fmt.Sprint("v", 4-i)), epoch.Add(time.Duration(4-i)), volume.Size{Bytes: 5 * sector})
	}
	// The oldest goes, though its size is not known, until what is known is within the limit.
	for i := range 3 {
		c, ok := q.Surplus(always)
		if id := c.ID(); !ok || id != volume.ID(fmt.Sprint("v", i)) {
			t.Fatalf("%s goes, %t, want v%d", id, ok, i)
		}
		takeChosen(q, c)
	}
	if c, ok := q.Surplus(always); ok {
		t.Errorf("%v goes, and the rest is within the limit", c)
	}
	before := asked
	for range 10 {
		q.Surplus(always)
	}
	if asked != before {
		t.Errorf("asked %d times about a namespace of which nothing is new", asked-before)
	}
	limit.Bytes = sector
	q.Recheck()
	if _, ok := q.Surplus(always); !ok {
		t.Error("nothing goes under a lower limit")
	}
}
