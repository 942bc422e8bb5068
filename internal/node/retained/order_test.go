package retained

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// always is a time at which all volumes are due.
var always = epoch.Add(100 * 365 * 24 * time.Hour)

// take removes a volume, and returns what was known of it; takeChosen does that with one that goes next.
func take(q *Index, id volume.ID) (Known, bool) {
	k, ok := q.Look(id)
	q.Forget(id)
	return k, ok
}

func takeChosen(q *Index, c Choice) Known {
	k, _ := take(q, c.ID())
	return k
}

// next returns the volume that is due first, for whatever cause.
func next(q *Index, factor float64) (Choice, bool) {
	first, ok := q.Over()
	if early, goes := q.Early(always, factor, volume.ForBytes); goes {
		if by := early.At.Compare(first.At); by < 0 || by == 0 && before(early.entry, first.entry) {
			return early, true
		}
	}
	return first, ok
}

func nextDue(q *Index, factor float64) (time.Time, bool) {
	c, ok := next(q, factor)
	return c.At, ok
}

func takeNext(q *Index, factor float64) (Known, bool) {
	c, ok := next(q, factor)
	if !ok {
		return Known{}, false
	}
	return takeChosen(q, c), true
}

// drain empties the queue in the order of deadlines.
func drain(t *testing.T, q *Index, factor float64) []string {
	t.Helper()
	var ids []string
	var last time.Time
	for {
		deadline, ok := nextDue(q, factor)
		r, took := takeNext(q, factor)
		if ok != took {
			t.Fatalf("next %t, but took %t", ok, took)
		}
		if !ok {
			return ids
		}
		if deadline.Before(last) {
			t.Errorf("%s is due at %v, before the one that came first (%v)", r.ID, deadline, last)
		}
		last = deadline
		ids = append(ids, string(r.ID))
		if _, ok := take(q, r.ID); ok {
			t.Fatalf("%s was taken, and is still in the queue", r.ID)
		}
	}
}

func TestIndexOrder(t *testing.T) {
	records := []volume.Record{
		retained("late-short", 3*time.Hour, time.Hour),
		retained("early-long", 0, 12*time.Hour),
		retained("late-long", 2*time.Hour, 12*time.Hour),
		retained("early-short", time.Hour, time.Hour),
		retained("middle", 90*time.Minute, 4*time.Hour),
	}
	tests := []struct {
		name   string
		add    []volume.Record
		factor float64
		want   []string
	}{
		{"no pressure", nil, 1,
			[]string{"early-short", "late-short", "middle", "early-long", "late-long"}},
		{"half: two are due together", nil, 0.5,
			[]string{"early-short", "middle", "late-short", "early-long", "late-long"}},
		{"a tenth: the long ones get ahead", nil, 0.1,
			[]string{"early-short", "early-long", "middle", "late-short", "late-long"}},
		{"full disk: oldest first", nil, 0,
			[]string{"early-long", "early-short", "middle", "late-long", "late-short"}},
		{"interrupted deletions are due at once",
			[]volume.Record{deleting("d2", 3*time.Hour, 1000*time.Hour), deleting("d1", 0, time.Hour)}, 1,
			[]string{"d1", "early-short", "d2", "late-short", "middle", "early-long", "late-long"}},
		{"same deadline: oldest first", []volume.Record{
			retained("same", -time.Hour, 3*time.Hour)}, 1,
			[]string{"same", "early-short", "late-short", "middle", "early-long", "late-long"}},
		{"same time: by ID", []volume.Record{
			retained("b", -time.Hour, time.Minute), retained("c", -time.Hour, time.Minute),
			retained("a", -time.Hour, time.Minute)}, 0,
			[]string{"a", "b", "c", "early-long", "early-short", "middle", "late-long", "late-short"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := &Index{}
			for _, r := range append(slices.Clone(records), tt.add...) {
				q.Put(r)
			}
			if got := drain(t, q, tt.factor); !slices.Equal(got, tt.want) {
				t.Errorf("order %v\n    want %v", got, tt.want)
			}
			if q.Len() != 0 || len(q.classes) != 0 {
				t.Errorf("drained queue has %d volumes and %d classes", q.Len(), len(q.classes))
			}
		})
	}
}

func TestIndexDeletingIsDueWhenUnpublished(t *testing.T) {
	q := &Index{}
	q.Put(deleting("d", time.Hour, 12*time.Hour))
	if deadline, ok := nextDue(q, 1); !ok || !deadline.Equal(epoch.Add(time.Hour)) {
		t.Errorf("deadline %v, %v; want the time of unpublishing", deadline, ok)
	}
}

func TestIndexPushReplaces(t *testing.T) {
	q := &Index{}
	q.Put(retained("v", 0, time.Hour))
	q.Put(retained("v", time.Minute, 2*time.Hour))
	if q.Len() != 1 || len(q.classes) != 1 {
		t.Fatalf("queue has %d volumes in %d classes, want one of each", q.Len(), len(q.classes))
	}
	deadline, _ := nextDue(q, 1)
	r, _ := take(q, "v")
	if r.Lifespan != 2*time.Hour || !deadline.Equal(epoch.Add(121*time.Minute)) {
		t.Errorf("next is %+v due at %v, want the later record", r, deadline)
	}
}

func TestIndexEmpty(t *testing.T) {
	q := &Index{}
	if d, ok := nextDue(q, 1); ok {
		t.Errorf("Next of an empty queue = %v", d)
	}
	if r, ok := takeNext(q, 1); ok {
		t.Errorf("took %v from an empty queue", r)
	}
	if q.Has(volume.Place{Pod: "pod", ID: "v"}) {
		t.Error("an empty queue has a volume")
	}
	if _, ok := take(q, "v"); ok || q.Len() != 0 {
		t.Error("an empty queue contains a volume")
	}
}

func TestIndexHas(t *testing.T) {
	q := &Index{}
	q.Put(retained("v", 0, time.Hour))
	if !q.Has(volume.Place{Pod: "pod", ID: "v"}) || q.Has(volume.Place{Pod: "other", ID: "v"}) || q.Has(volume.Place{Pod: "pod", ID: "w"}) {
		t.Error("want volume v of pod, and no other")
	}
}

// TestIndexAgainstSort compares the queue with a list that is sorted anew for each question.
func TestIndexAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lifespans := []time.Duration{0, time.Second, time.Minute, 12 * time.Hour}
	q := &Index{}
	naive := make(map[volume.ID]volume.Record)

	first := func(factor float64) volume.Record {
		return slices.MinFunc(slices.Collect(func(yield func(volume.Record) bool) {
			for _, r := range naive {
				if !yield(r) {
					return
				}
			}
		}), func(a, b volume.Record) int {
			return cmp.Or(naiveDeadline(a, factor).Compare(naiveDeadline(b, factor)),
				a.Unpublished.Compare(b.Unpublished), cmp.Compare(a.ID, b.ID))
		})
	}
	for step := range 20_000 {
		id := fmt.Sprintf("v%d", rng.IntN(200))
		switch rng.IntN(4) {
		case 0, 1:
			r := retained(id, time.Duration(rng.IntN(100))*time.Second, lifespans[rng.IntN(len(lifespans))])
			if rng.IntN(10) == 0 {
				r.Phase = volume.Deleting
			}
			q.Put(r)
			naive[r.ID] = r
		case 2:
			r, ok := take(q, volume.ID(id))
			want, wantOK := naive[volume.ID(id)]
			if ok != wantOK || r.Lifespan != want.Lifespan || !r.Unpublished.Equal(want.Unpublished) {
				t.Fatalf("step %d: Take(%s) = %+v, %v; want %+v, %v", step, id, r, ok, want, wantOK)
			}
			delete(naive, volume.ID(id))
		case 3:
			if len(naive) == 0 {
				continue
			}
			factor := []float64{0, 0.001, 0.5, 1}[rng.IntN(4)]
			deadline, _ := nextDue(q, factor)
			got, ok := takeNext(q, factor)
			want := first(factor)
			if !ok || got.ID != want.ID || !deadline.Equal(naiveDeadline(want, factor)) {
				t.Fatalf("step %d: Next(%v) = %s at %v, %v; want %s at %v",
					step, factor, got.ID, deadline, ok, want.ID, naiveDeadline(want, factor))
			}
			delete(naive, want.ID)
		}
		if q.Len() != len(naive) {
			t.Fatalf("step %d: %d volumes, want %d", step, q.Len(), len(naive))
		}
	}
}

func naiveDeadline(r volume.Record, factor float64) time.Time {
	if r.Phase == volume.Deleting {
		return r.Unpublished
	}
	return r.Unpublished.Add(time.Duration(float64(r.Lifespan) * factor))
}

func BenchmarkQueue(b *testing.B) {
	const size = 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	lifespans := []time.Duration{time.Hour, 12 * time.Hour}
	now := time.Now()
	records := make([]volume.Record, size)
	for i := range records {
		records[i] = retained(fmt.Sprintf("csi-%064x", i), 0, lifespans[i%len(lifespans)])
		records[i].Unpublished = now.Add(time.Duration(rng.IntN(1e9)) * time.Microsecond)
	}
	full := func(b *testing.B) *Index {
		q := &Index{}
		for _, r := range records {
			q.Put(r)
		}
		return q
	}
	b.Run("Push", func(b *testing.B) {
		b.ReportAllocs()
		q := &Index{}
		for i := 0; b.Loop(); i++ {
			if i%size == 0 {
				q = &Index{}
			}
			q.Put(records[i%size])
		}
	})
	b.Run("Next", func(b *testing.B) {
		q := full(b)
		b.ReportAllocs()
		for b.Loop() {
			q.Over()
			q.Early(always, 0.5, volume.ForBytes)
		}
	})
	b.Run("TakePush", func(b *testing.B) {
		q := full(b)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r, _ := take(q, records[i%size].ID)
			q.Put(r.Record)
		}
	})
}
