package retained

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestFillingIsPushing: a queue that was filled at once is the same as one that got its volumes one by
// one: what it lists, what is to be measured, and what goes when. Some come twice, and some were
// unpublished at the same time.
func TestFillingIsPushing(t *testing.T) {
	limit := func(string) volume.Size { return volume.Size{Bytes: 1 << 32} }
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		settings := Queue{Fair: seed%2 == 0, MinLifespan: time.Duration(seed%3) * time.Hour, MaxRetained: limit}
		one, other := settings, settings
		pushed, filling := &one, Fill(&other)
		volumes := map[volume.ID]Asleep{}
		for range 100 {
			a := anyVolume(rng, volume.ID(fmt.Sprint("v", rng.IntN(80))), []string{"", "a", "b", "c"})
			a.Unpublished = epoch.Add(a.Unpublished.Sub(epoch).Round(time.Minute << (seed % 8)))
			volumes[a.ID] = a
			pushed.Push(a.Record)
			filling.Push(&a.Record)
		}
		filled := filling.End()
		if filled.Len() != len(volumes) || filled.Unmeasured() != pushed.Unmeasured() {
			t.Fatalf("seed %d: %d volumes, %d to be measured, want %d and %d", seed, filled.Len(), filled.Unmeasured(),
				len(volumes), pushed.Unmeasured())
		}
		list := map[volume.ID]volume.Record{}
		for id, a := range volumes {
			list[id] = a.Record
			for _, q := range []*Queue{pushed, filled} {
				q.Measured(id, a.Unpublished, a.Size)
			}
		}
		checkNewest(t, filled, list, volume.Selection{Limit: 1 + rng.IntN(20)}, 1000)
		checkHoldings(t, filled, list)
		for _, step := range []struct {
			at     time.Duration
			factor float64
		}{{time.Hour, 1}, {3 * time.Hour, 0.5}, {8 * time.Hour, 0.5}, {9 * time.Hour, 0}, {100 * time.Hour, 0}} {
			at := epoch.Add(step.at)
			got, want := drainAt(filled, at, step.factor, true), drainAt(pushed, at, step.factor, true)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, after %v under %v go\n%v, want\n%v", seed, step.at, step.factor, got, want)
			}
		}
		if filled.Len() != 0 || len(filled.classes) != 0 || len(filled.tenants.named) != 0 {
			t.Errorf("seed %d: %d volumes are left, in %d classes and %d namespaces", seed, filled.Len(), len(filled.classes),
				len(filled.tenants.named))
		}
	}
}

// TestFillingKeepsNoText: what is kept of a record is no part of a larger text, which would stay in
// memory with it.
func TestFillingKeepsNoText(t *testing.T) {
	const all = "namespaceuidvolumeaccountbywhy"
	r := retained("v", 0, time.Hour)
	r.Namespace, r.VolumeName, r.ServiceAccount = all[:9], all[12:18], all[18:25]
	r.Owner = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: all[9:12]}
	r.Hold = volume.Hold{Kind: volume.Pinned, By: all[25:27], Why: all[27:]}
	filling := Fill(&Queue{})
	filling.Push(&r)
	q := filling.End()
	n := q.table.find(r.ID)
	s, g, h := q.table.space(n), q.table.group(n), q.table.holds.texts.value(q.table.holds.all[n].texts)
	begins := unsafe.StringData(all)
	for _, text := range []string{s.namespace, s.namespaceUID, g.volumeName, g.serviceAccount, h.by, h.why, q.Holdings()[0].Namespace} {
		at := uintptr(unsafe.Pointer(unsafe.StringData(text))) - uintptr(unsafe.Pointer(begins))
		if text == "" || at < uintptr(len(all)) {
			t.Errorf("%q is part of the text at %d", text, at)
		}
	}
}

// BenchmarkFilling fills a queue with a million volumes of 10,000 namespaces, as a start does.
func BenchmarkFilling(b *testing.B) {
	const size = 1_000_000
	records := make([]volume.Record, size)
	for at, i := range rand.New(rand.NewPCG(7, 8)).Perm(size) {
		records[at] = complete(i, 10_000)
	}
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%t", fair), func(b *testing.B) {
			for b.Loop() {
				filling := Fill(&Queue{Fair: fair})
				for i := range records {
					filling.Push(&records[i])
				}
				filling.End()
			}
		})
	}
}
