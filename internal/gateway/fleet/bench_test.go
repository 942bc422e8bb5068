package fleet

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/volume"
)

// fleetOf5000 returns 5,000 nodes in memory with eight volumes each.
func fleetOf5000() *fakeNodes {
	nodes := &fakeNodes{}
	for i := range 5000 {
		n := &fakeNode{name: fmt.Sprintf("node-%04d.cluster.example", i)}
		for j := range 8 {
			r := record(fmt.Sprintf("csi-%064x", 8*i+j), 5000*(8-j)+i)
			r.PodName, r.Pod = fmt.Sprintf("nightly-29000000-%05d", i), volume.PodUID(fmt.Sprintf("0c8e1f9a-0000-4000-8000-%012d", 8*i+j))
			n.volumes = append(n.volumes, r)
		}
		nodes.nodes = append(nodes.nodes, n)
	}
	return nodes
}

// BenchmarkList lists volumes of 5,000 nodes, without what connections cost.
func BenchmarkList(b *testing.B) {
	nodes := fleetOf5000()
	f, _ := newFleet(b, nodes, nil)
	for _, limit := range []int{1, 500, 5000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: limit})
				if err != nil || len(page.Entries) != limit {
					b.Fatalf("%d entries, %v", len(page.Entries), err)
				}
			}
		})
	}
}

// BenchmarkListMemory has 16 pages of 5,000 entries in memory at the same time, as the answers are
// written, and reports what they take.
func BenchmarkListMemory(b *testing.B) {
	nodes := fleetOf5000()
	f, _ := newFleet(b, nodes, nil)
	for b.Loop() {
		before := heapInUse()
		pages := make([]Page, 16)
		var running sync.WaitGroup
		for i := range pages {
			running.Go(func() {
				pages[i], _ = f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: 5000})
			})
		}
		running.Wait()
		var during runtime.MemStats
		runtime.ReadMemStats(&during)
		kept := heapInUse() - before
		b.ReportMetric(float64(kept)/1e6, "MB-kept")
		b.ReportMetric((float64(during.HeapAlloc)-float64(before))/1e6, "MB-with-garbage")
		for _, p := range pages {
			if len(p.Entries) == 0 {
				b.Fatal("an empty page")
			}
		}
	}
}

// heapInUse returns how much memory is in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
