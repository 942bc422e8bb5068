package workload

import (
	"testing"
	"time"
)

func TestFaultsAreSpread(t *testing.T) {
	w := everything()
	for seed := range uint64(50) {
		kills, number := 0, make(map[FaultKind]int)
		last := PlannedFault{}
		for _, f := range NewPlan(w, seed).Faults() {
			if f.Pods < last.Pods || f.Pods == last.Pods && f.Delay < last.Delay {
				t.Errorf("seed %d: %+v comes after %+v", seed, f, last)
			}
			last = f
			number[f.Kind]++
			if f.Number != number[f.Kind] || f.Delay <= 0 || f.Delay > longestDelay || f.Kind.OfVolume() {
				t.Errorf("seed %d: odd fault number %d of its kind: %+v", seed, number[f.Kind], f)
			}
			if f.Kind == DaemonKill {
				if part := w.Pods / 10; f.Pods < kills*part || f.Pods > (kills+1)*part || f.Pods >= w.Pods {
					t.Errorf("seed %d: kill %d comes after %d pods, want it in its own part", seed, kills+1, f.Pods)
				}
				kills++
				if f.For != time.Second || f.Step != 0 {
					t.Errorf("seed %d: the workload's numbers are lost: %+v", seed, f)
				}
			}
		}
		if kills != 10 || number[ClockStep] != 5 {
			t.Errorf("seed %d: %d kills and %d steps of the clock, want 10 and 5", seed, kills, number[ClockStep])
		}
	}
}

func TestNodeFaultsOfOnePod(t *testing.T) {
	w := everything()
	w.Pods = 1
	w.Faults = w.Faults[:1]
	for _, f := range NewPlan(w, 1).Faults() {
		if f.Pods != 0 {
			t.Errorf("a fault waits for %d pods, there is only one that could end", f.Pods)
		}
	}
}

func TestTroublesAreSpread(t *testing.T) {
	w := everything()
	for seed := range uint64(4) {
		number := make(map[FaultKind]int)
		volumes := make(map[int]int)
		for _, pod := range pods(NewPlan(w, seed)) {
			troubles := 0
			for i, v := range pod.Volumes {
				f := v.Trouble
				if f == nil {
					continue
				}
				troubles++
				volumes[i]++
				number[f.Kind]++
				if v.Persistent || !f.Kind.OfVolume() || f.Pods != pod.Index || f.Number != number[f.Kind] ||
					f.Delay <= 0 || f.Delay > longestDelay || (f.For > 0) != f.Kind.Lasting() {
					t.Errorf("seed %d, pod %d: odd trouble number %d of its kind: %+v", seed, pod.Index, number[f.Kind], f)
				}
				// Each in its own part, or right after it where that pod had one.
				part := w.Pods / map[FaultKind]int{BusyTarget: 100, PodRemoved: 50}[f.Kind]
				if from := (f.Number - 1) * part; pod.Index < from || pod.Index > from+part+5 {
					t.Errorf("seed %d: %s %d befalls pod %d, want it in its own part", seed, f.Kind, f.Number, pod.Index)
				}
			}
			if troubles > 1 || troubles == 1 && pod.DeletedEarly > 0 {
				t.Errorf("seed %d: pod %d has %d troubles and is deleted after %s", seed, pod.Index, troubles, pod.DeletedEarly)
			}
		}
		if number[BusyTarget] != 100 || number[PodRemoved] != 50 {
			t.Errorf("seed %d: troubles are %v, want 100 and 50", seed, number)
		}
		if volumes[1] < 10 || volumes[2] < 5 {
			t.Errorf("seed %d: troubles befall volumes %v, want any of a pod's", seed, volumes)
		}
	}
}

// TestTroubleForEverybody has as many faults as pods: each gets one.
func TestTroubleForEverybody(t *testing.T) {
	w := everything()
	w.Pods, w.Volumes.Max = 100, 1
	w.Volumes.Persistent = 0
	w.Faults = []Fault{{Kind: PodRemoved, Times: 30}, {Kind: VolumeRemoved, Times: 30}, {Kind: VolumeSymlink, Times: 40}}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods(NewPlan(w, 1)) {
		if pod.Volumes[0].Trouble == nil {
			t.Errorf("pod %d has no trouble, though there is one for each", pod.Index)
		}
	}
}
