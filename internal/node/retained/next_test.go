package retained

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestNextAgainstModel compares what goes next with a plain list, while volumes come and go.
func TestNextAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := &Index{Fair: seed%2 == 0, MinLifespan: time.Duration(seed%3) * time.Hour}
		m := newModel(q)
		namespaces := []string{"", "a", "b", "c"}[:1+rng.IntN(4)]
		for step := range 400 {
			id := volume.ID(fmt.Sprint("v", rng.IntN(40)))
			switch rng.IntN(3) {
			case 0:
				m.both(q, anyVolume(rng, id, namespaces))
			case 1:
				take(q, id)
				delete(m.volumes, id)
			}
			now := epoch.Add(10*time.Hour + time.Duration(rng.Int64N(int64(10*time.Hour))))
			factor := []float64{0, 0, 0.1, rng.Float64(), 1}[rng.IntN(5)]
			scarcer := []volume.Reason{volume.ForBytes, volume.ForInodes}[rng.IntN(2)]
			if gone := checkModel(t, q, m, now, factor, scarcer); gone != "" && rng.IntN(2) == 0 {
				take(q, gone)
				delete(m.volumes, gone)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d, factor %v, %v after the epoch", seed, step, factor, now.Sub(epoch))
			}
		}
	}
}

// checkModel compares all that a queue says. It returns the volume that goes early, if one does.
func checkModel(t *testing.T, q *Index, m *model, now time.Time, factor float64, scarcer volume.Reason) (gone volume.ID) {
	t.Helper()
	idOf := Choice.ID
	over, ok := q.Over()
	if id, at, want := m.over(); ok != want || ok && (idOf(over) != id || !over.At.Equal(at)) {
		t.Errorf("over at %v, %t, want %s at %v", over.At, ok, id, at)
	}
	if ok && !over.At.After(now) {
		return idOf(over) // nothing goes early before it
	}
	early, ok := q.Early(now, factor, scarcer)
	id, at, want := m.early(now, factor, scarcer)
	switch {
	case ok != want || ok && !early.At.Equal(at):
		t.Errorf("early at %v, %t, want %s at %v", early.At, ok, id, at)
	case ok && !at.After(now):
		if gone = idOf(early); gone != id {
			t.Errorf("%s goes early, want %s", gone, id)
		}
		return gone
	}
	last, ok := q.Guaranteed(scarcer)
	if id, want := m.guaranteed(scarcer); ok != want || ok && idOf(last) != id {
		t.Errorf("%v goes last, %t, want %s", last, ok, id)
	}
	return ""
}

// TestWhatGoesFirst: a node with one volume of each kind, all of the same size.
func TestWhatGoesFirst(t *testing.T) {
	const long = 100 * time.Hour
	volumes := []volume.Record{
		retained("old", 0, long), retained("newer", time.Hour, long), retained("short", 2*time.Hour, 9*time.Hour),
		succeededAt("succeeded", 3*time.Hour, long), succeededAt("succeeded later", 4*time.Hour, 10*time.Hour),
		held("released later", volume.Released, time.Hour, 12*time.Hour), held("released", volume.Released, 2*time.Hour, 11*time.Hour),
		held("pinned", volume.Pinned, 0, 50*time.Hour), held("pinned longer", volume.Pinned, 0, 90*time.Hour),
		stoppedAt("stopped", 5*time.Hour, long), stoppedAt("stopped later", 6*time.Hour, long),
		retained("young", 9*time.Hour+30*time.Minute, long), succeededAt("young and succeeded", 9*time.Hour+40*time.Minute, long),
		deleting("interrupted", 8*time.Hour, long), retained("over", 0, time.Hour),
	}
	for _, tt := range []struct {
		name   string
		factor float64
		after  time.Duration
		want   []string
	}{
		{"no pressure", 1, 10 * time.Hour, []string{"over", "interrupted"}},
		{"the old one is due", 0.09, 10 * time.Hour, []string{
			"over", "interrupted", "released", "released later", "succeeded later", "succeeded", "stopped", "stopped later",
			"short", "old", "newer",
		}},
		{"nothing is due", 0.8, 9 * time.Hour, []string{"over", "interrupted"}},
		{"full disk", 0, 10 * time.Hour, []string{
			"over", "interrupted", "released", "released later", "succeeded", "succeeded later", "stopped", "stopped later", "old", "newer", "short",
			"young and succeeded", "young", "pinned", "pinned longer",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := &Index{MinLifespan: time.Hour}
			for _, r := range volumes {
				q.Put(r)
			}
			if got := drainAt(q, epoch.Add(tt.after), tt.factor, true); !slices.Equal(got, tt.want) {
				t.Errorf("gone are %v\n       want %v", got, tt.want)
			}
		})
	}
}

func succeededAt(id string, after, lifespan time.Duration) volume.Record {
	r := retained(id, after, lifespan)
	r.Outcome = volume.Succeeded
	return r
}

func stoppedAt(id string, after, lifespan time.Duration) volume.Record {
	r := retained(id, after, lifespan)
	r.Outcome = volume.Stopped
	return r
}

// held returns a volume whose hold ends at the given time after the epoch.
func held(id string, kind volume.HoldKind, after, until time.Duration) volume.Record {
	r := retained(id, after, 40*time.Hour)
	r.Hold = volume.Hold{Kind: kind, For: until - after, By: "anna", Why: "to test it"}
	return r
}

// drainAt deletes all that goes at a time under a factor that stays, also what is guaranteed if
// floor. It returns the IDs in their order.
func drainAt(q *Index, now time.Time, factor float64, floor bool) (ids []string) {
	for {
		c, ok := q.Over()
		if ok && c.At.After(now) {
			c, ok = q.Early(now, factor, volume.ForBytes)
		}
		if (!ok || c.At.After(now)) && factor == 0 && floor {
			c, ok = q.Guaranteed(volume.ForBytes)
		}
		if !ok || c.At.After(now) {
			return ids
		}
		ids = append(ids, string(takeChosen(q, c).ID))
	}
}

// TestHigherFactorTakesASubset: what goes under a factor goes at the same time under a lower one too.
func TestHigherFactorTakesASubset(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		settings := Index{Fair: seed%2 == 0, MinLifespan: time.Duration(seed%3) * time.Hour}
		m := newModel(&settings)
		for i := range 40 {
			a := anyVolume(rng, volume.ID(fmt.Sprint("v", i)), []string{"a", "b", "c"})
			a.Size.Bytes |= sector // two namespaces never retain the same
			a.Size.Inodes |= 1
			m.volumes[a.ID] = a
		}
		now := epoch.Add(10 * time.Hour)
		var before []string
		for _, factor := range []float64{1, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.01, 0} {
			q := &Index{Fair: settings.Fair, MinLifespan: settings.MinLifespan}
			for _, a := range m.volumes {
				m.both(q, a)
			}
			gone := drainAt(q, now, factor, rng.IntN(2) == 0)
			for _, id := range before {
				if !slices.Contains(gone, id) {
					t.Fatalf("seed %d: %s goes under a higher factor, and not under %v", seed, id, factor)
				}
			}
			before = gone
		}
	}
}

// TestManyDifferentLifespans: rounded, they are few.
func TestManyDifferentLifespans(t *testing.T) {
	q := &Index{}
	const volumes = 100_000
	for i := range volumes {
		asked := time.Duration(i+1) * (9900 * time.Minute / volumes)
		q.Put(retained(fmt.Sprint("v", i), time.Duration(i), lifespan.RoundUp(asked)))
	}
	if len(q.classes) > 300 {
		t.Errorf("%d classes, want at most 300", len(q.classes))
	}
}
