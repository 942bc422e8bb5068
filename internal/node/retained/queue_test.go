package retained

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

var epoch = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func retained(id string, after, lifespan time.Duration) volume.Record {
	return volume.Record{
		ID:          volume.ID(id),
		Pod:         "pod",
		Phase:       volume.Retained,
		Unpublished: epoch.Add(after),
		Lifespan:    lifespan,
	}
}

func deleting(id string, after, lifespan time.Duration) volume.Record {
	r := retained(id, after, lifespan)
	r.Phase = volume.Deleting
	return r
}

func newQueue(t testing.TB) *Queue {
	t.Helper()
	return &Queue{}
}

// always is a time at which all volumes are due.
var always = epoch.Add(100 * 365 * 24 * time.Hour)

// next returns the volume that is due first, for whatever cause.
func next(q *Queue, factor float64) (Choice, bool) {
	first, ok := q.Over()
	if early, goes := q.Early(always, factor, volume.ForBytes); goes {
		if by := early.At.Compare(first.At); by < 0 || by == 0 && q.table.before(early.number, first.number) {
			return early, true
		}
	}
	return first, ok
}

func nextDue(q *Queue, factor float64) (time.Time, bool) {
	c, ok := next(q, factor)
	return c.At, ok
}

func takeNext(q *Queue, factor float64) (Asleep, bool) {
	c, ok := next(q, factor)
	if !ok {
		return Asleep{}, false
	}
	return q.TakeChosen(c), true
}

// drain empties the queue in the order of deadlines.
func drain(t *testing.T, q *Queue, factor float64) []string {
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
		if _, ok := q.Take(r.ID); ok {
			t.Fatalf("%s was taken, and is still in the queue", r.ID)
		}
	}
}

func TestQueueOrder(t *testing.T) {
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
			q := newQueue(t)
			for _, r := range append(slices.Clone(records), tt.add...) {
				q.Push(r)
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

func TestQueueDeletingIsDueWhenUnpublished(t *testing.T) {
	q := newQueue(t)
	q.Push(deleting("d", time.Hour, 12*time.Hour))
	if deadline, ok := nextDue(q, 1); !ok || !deadline.Equal(epoch.Add(time.Hour)) {
		t.Errorf("deadline %v, %v; want the time of unpublishing", deadline, ok)
	}
}

func TestQueuePushReplaces(t *testing.T) {
	q := newQueue(t)
	q.Push(retained("v", 0, time.Hour))
	q.Push(retained("v", time.Minute, 2*time.Hour))
	if q.Len() != 1 || len(q.classes) != 1 {
		t.Fatalf("queue has %d volumes in %d classes, want one of each", q.Len(), len(q.classes))
	}
	deadline, _ := nextDue(q, 1)
	r, _ := q.Take("v")
	if r.Lifespan != 2*time.Hour || !deadline.Equal(epoch.Add(121*time.Minute)) {
		t.Errorf("next is %+v due at %v, want the later record", r, deadline)
	}
}

func TestQueueEmpty(t *testing.T) {
	q := newQueue(t)
	if d, ok := nextDue(q, 1); ok {
		t.Errorf("Next of an empty queue = %v", d)
	}
	if r, ok := takeNext(q, 1); ok {
		t.Errorf("took %v from an empty queue", r)
	}
	if q.Has(volume.Place{Pod: "pod", ID: "v"}) {
		t.Error("an empty queue has a volume")
	}
	if _, ok := q.Take("v"); ok || q.Len() != 0 {
		t.Error("an empty queue contains a volume")
	}
}

func TestQueueHas(t *testing.T) {
	q := newQueue(t)
	q.Push(retained("v", 0, time.Hour))
	if !q.Has(volume.Place{Pod: "pod", ID: "v"}) || q.Has(volume.Place{Pod: "other", ID: "v"}) || q.Has(volume.Place{Pod: "pod", ID: "w"}) {
		t.Error("want volume v of pod, and no other")
	}
}

// TestQueueAgainstSort compares the queue with a list that is sorted anew for each question.
func TestQueueAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lifespans := []time.Duration{0, time.Second, time.Minute, 12 * time.Hour}
	q := newQueue(t)
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
			q.Push(r)
			naive[r.ID] = r
		case 2:
			r, ok := q.Take(volume.ID(id))
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
	full := func(b *testing.B) *Queue {
		q := newQueue(b)
		for _, r := range records {
			q.Push(r)
		}
		return q
	}
	b.Run("Push", func(b *testing.B) {
		b.ReportAllocs()
		q := newQueue(b)
		for i := 0; b.Loop(); i++ {
			if i%size == 0 {
				q = newQueue(b)
			}
			q.Push(records[i%size])
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
			r, _ := q.Take(records[i%size].ID)
			q.Push(r.Record)
		}
	})
}

// BenchmarkMemory measures what a retained volume takes, with names as a cluster has them, and with
// names that are all different; with and without owners.
func BenchmarkMemory(b *testing.B) {
	const size = 300_000
	for _, is := range []struct {
		name     string
		distinct int
		record   func(i, distinct int) volume.Record
	}{
		{"shared", 100, named}, {"different", size, named}, {"owned", 100, owned}, {"owned, different", size, owned},
		{"owned, other IDs", 100, func(i, distinct int) volume.Record {
			r := owned(i, distinct)
			r.ID = volume.ID(fmt.Sprintf("csi-%064x", i))
			return r
		}},
	} {
		b.Run(is.name, func(b *testing.B) {
			for b.Loop() {
				debug.FreeOSMemory()
				before := residentBytes(b)
				var q Queue
				for i := range size {
					q.Push(is.record(i, is.distinct))
				}
				debug.FreeOSMemory()
				b.ReportMetric((residentBytes(b)-before)/size, "B/volume")
				runtime.KeepAlive(&q)
			}
		})
	}
}

// BenchmarkNext finds the next of a million volumes to go: with one lifespan and in one namespace, with
// 300 lifespans and all outcomes, and with 10,000 namespaces in a fair queue.
func BenchmarkNext(b *testing.B) {
	const size = 1_000_000
	for _, is := range []struct {
		name   string
		fair   bool
		record func(i int) volume.Record
	}{
		{"plain", false, func(i int) volume.Record { return named(i, 1) }},
		{"complete", false, func(i int) volume.Record { return complete(i, 100) }},
		{"complete, fair", true, func(i int) volume.Record { return complete(i, 10_000) }},
	} {
		b.Run(is.name, func(b *testing.B) {
			q := &Queue{Fair: is.fair, MinLifespan: time.Minute}
			for i := range size {
				r := is.record(i)
				q.Push(r)
				q.Measured(r.ID, r.Unpublished, volume.Size{Bytes: int64(i) * sector, Inodes: 1 + int64(i%1000)})
			}
			b.ResetTimer()
			for b.Loop() {
				q.Over()
				q.Early(always, 0, volume.ForInodes)
			}
		})
	}
}

// BenchmarkMillion measures the memory of a process with a million retained volumes, a tenth of
// which is published and retained again, when the collector's target follows the queue.
func BenchmarkMillion(b *testing.B) {
	const size = 1_000_000
	for name, record := range map[string]func(i, distinct int) volume.Record{"unasked": named, "owned": owned, "complete": complete} {
		b.Run(name, func(b *testing.B) {
			defer debug.SetGCPercent(debug.SetGCPercent(100))
			for b.Loop() {
				debug.FreeOSMemory()
				q := Queue{Grew: func(bytes int) { debug.SetGCPercent(GCPercent(bytes)) }}
				for i := range size {
					q.Push(record(i, 100))
				}
				for i := range size / 10 {
					again, _ := q.Take(record(10*i, 100).ID)
					q.Push(again.Record)
				}
				b.ReportMetric(residentBytes(b)/(1<<20), "MiB")
				runtime.KeepAlive(&q)
			}
		})
	}
}

// named returns the record of a volume with the names of a cluster, distinct of which are different.
func named(i, distinct int) volume.Record {
	r := volume.Record{
		Pod:       volume.PodUID(fmt.Sprintf("01234567-89ab-cdef-0123-%012x", i)),
		Namespace: fmt.Sprintf("team-%d", i%distinct), PodName: fmt.Sprintf("nightly-job-%016x-x7k2p", i),
		VolumeName: fmt.Sprintf("scratch-%d", i%distinct), ServiceAccount: "default", Published: epoch,
	}.Retain(epoch.Add(time.Duration(i)), time.Hour)
	r.ID = volume.KubeletID(r.Pod, r.VolumeName)
	return r
}

// owned returns the record of a volume as named does, whose pod is a Job's.
func owned(i, distinct int) volume.Record {
	r := named(i, distinct)
	job := strings.TrimSuffix(r.PodName, "-x7k2p")
	r.Owner = volume.Owner{
		Verdict: volume.Confirmed, NamespaceUID: fmt.Sprintf("76543210-89ab-cdef-0123-%012x", i%distinct),
		Kind: "Job", Name: job, UID: fmt.Sprintf("fedcba98-89ab-cdef-0123-%012x", i), Job: job, JobIndex: "17",
	}
	return r
}

// complete returns the record of a volume as owned does, with all that is known of a volume since
// pods may say how long it is kept: 300 different lifespans.
func complete(i, distinct int) volume.Record {
	r := owned(i, distinct)
	r.Lifespan = time.Duration(1+i%300) * time.Minute
	r.Terms = volume.Terms{Lifespan: r.Lifespan, LifespanSucceeded: r.Lifespan / 2, Limit: volume.Size{Bytes: 1 << 30}}
	r.Outcome = volume.Outcome(i / 300 % 4)
	r.Project = 1_258_291_200 + uint32(i)
	return r
}

// residentBytes is the memory of this process that is not a file's.
func residentBytes(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		b.Fatal(err)
	}
	return kilobytes * 1024
}
