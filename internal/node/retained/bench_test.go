package retained

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// limited is how a daemon sets an index.
func limited(fair bool) *Index {
	return &Index{Fair: fair, MinLifespan: time.Minute, MaxRetained: func(string) volume.Size { return volume.Size{} },
		PerOwner: func(string) volume.PerOwner { return volume.PerOwner{} }}
}

// fill fills an index in any order, as a start does, and returns how long that took.
func fill(x *Index, size int, record func(i int) volume.Record) (took time.Duration) {
	const batch = 10_000
	order := rand.New(rand.NewPCG(7, 8)).Perm(size)
	records := make([]volume.Record, batch)
	for len(order) > 0 {
		now := order[:min(batch, len(order))]
		for at, i := range now {
			records[at] = record(i)
		}
		began := time.Now()
		for at := range now {
			x.Put(records[at])
		}
		took += time.Since(began)
		order = order[len(now):]
	}
	return took
}

// BenchmarkFill measures what a retained volume takes of the heap, and how long a start takes to fill the index: with the
// names of a cluster, of pods with and without an owner, and with names that are all different.
func BenchmarkFill(b *testing.B) {
	for _, size := range []int{200_000, 1_000_000} {
		for _, is := range []struct {
			name     string
			distinct int
			record   func(i, distinct int) volume.Record
		}{
			{"unasked", 100, named}, {"complete", 100, complete}, {"complete, other IDs", 100, func(i, distinct int) volume.Record {
				r := complete(i, distinct)
				r.ID = volume.ID(fmt.Sprintf("volume-%d", i))
				return r
			}}, {"complete, all different", size, complete},
		} {
			b.Run(fmt.Sprintf("%d/%s", size, is.name), func(b *testing.B) {
				for b.Loop() {
					heap := func() uint64 {
						runtime.GC()
						runtime.GC()
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						return m.HeapAlloc
					}
					x := limited(true)
					before := heap()
					took := fill(x, size, func(i int) volume.Record { return is.record(i, is.distinct) })
					grew := heap() - before
					began := time.Now()
					runtime.GC()
					b.ReportMetric(time.Since(began).Seconds(), "s/collection")
					b.ReportMetric(float64(grew)/float64(size), "B/volume")
					b.ReportMetric(float64(grew)/(1<<20), "MiB")
					b.ReportMetric(took.Seconds(), "s/fill")
					runtime.KeepAlive(x)
				}
			})
		}
	}
}
