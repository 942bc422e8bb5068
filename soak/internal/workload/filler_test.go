package workload

import (
	"reflect"
	"testing"
)

func TestFiller(t *testing.T) {
	p := NewPlan(defaults(), 7)
	seen := make(map[string]bool)
	for _, kind := range []FaultKind{DiskFull, NoInodes} {
		for number := 1; number <= 3; number++ {
			pod := p.Filler(PlannedFault{Kind: kind, Number: number})
			if again := NewPlan(defaults(), 7).Filler(PlannedFault{Kind: kind, Number: number}); !reflect.DeepEqual(pod, again) {
				t.Errorf("the same seed makes %+v and %+v", pod, again)
			}
			if len(pod.Volumes) != 1 || pod.Volumes[0].ReadOnly || pod.Volumes[0].Content.Marker == "" {
				t.Errorf("%+v, want one volume that can be written, with a marker", pod)
			}
			if seen[pod.UID] {
				t.Errorf("two pods have the UID %s", pod.UID)
			}
			seen[pod.UID] = true
		}
	}
}
