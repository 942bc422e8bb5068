package workload

import (
	"cmp"
	"slices"
	"time"
)

// longestDelay is how late a fault may begin after its moment has come, so that
// it meets pods in the middle of what they do.
const longestDelay = 200 * time.Millisecond

// trouble is a fault of a volume.
type trouble struct {
	fault PlannedFault
	// volume picks one of the pod's volumes, as a share of them.
	volume float64
}

// of picks one of so many volumes.
func (t trouble) of(volumes int) int { return int(t.volume * float64(volumes)) }

// drawFaults spreads the faults of the node over the run.
func (p Plan) drawFaults() []PlannedFault {
	var all []PlannedFault
	for _, t := range p.draw(false) {
		all = append(all, t.fault)
	}
	slices.SortStableFunc(all, func(a, b PlannedFault) int {
		return cmp.Or(cmp.Compare(a.Pods, b.Pods), cmp.Compare(a.Delay, b.Delay))
	})
	number(all)
	return all
}

// drawTroubles spreads the faults of volumes over the pods. A pod gets one at
// most: some concern all of its volumes, and would undo another.
func (p Plan) drawTroubles() map[int]trouble {
	troubles := make(map[int]trouble)
	var all []PlannedFault
	for _, t := range p.draw(true) {
		// Check has seen to it that there are pods enough.
		for taken := true; taken; {
			if _, taken = troubles[t.fault.Pods]; taken {
				t.fault.Pods = (t.fault.Pods + 1) % p.workload.Pods
			}
		}
		troubles[t.fault.Pods] = t
		all = append(all, t.fault)
	}
	slices.SortFunc(all, func(a, b PlannedFault) int { return cmp.Compare(a.Pods, b.Pods) })
	number(all)
	for _, f := range all {
		t := troubles[f.Pods]
		t.fault = f
		troubles[f.Pods] = t
	}
	return troubles
}

// draw draws the faults of the node or those of volumes, each somewhere in its
// own part of the run. Each entry of the workload has a stream of its own, so
// that adding another kind changes nothing.
func (p Plan) draw(ofVolume bool) []trouble {
	var all []trouble
	entries := make(map[FaultKind]uint64)
	for _, f := range p.workload.Faults {
		entries[f.Kind]++
		if f.Kind.OfVolume() != ofVolume {
			continue
		}
		for i := range f.Times {
			r := p.stream("fault "+string(f.Kind), entries[f.Kind], uint64(i))
			place := (float64(i) + r.Float64()) / float64(f.Times)
			all = append(all, trouble{
				fault: PlannedFault{
					Kind:   f.Kind,
					For:    f.For.D(),
					Step:   f.Step.D(),
					Pods:   min(int(place*float64(p.workload.Pods)), p.workload.Pods-1),
					Delay:  upTo(r, longestDelay),
					Choice: r.Uint64(),
				},
				volume: r.Float64(),
			})
		}
	}
	return all
}

// number counts the faults of each kind, in the given order.
func number(faults []PlannedFault) {
	count := make(map[FaultKind]int)
	for i := range faults {
		count[faults[i].Kind]++
		faults[i].Number = count[faults[i].Kind]
	}
}
