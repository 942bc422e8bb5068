package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// near fails unless got is within a share of want.
func near(t *testing.T, name string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %.4f, want about %.4f", name, got, want)
	}
}

func TestShares(t *testing.T) {
	w := everything()
	w.Pods = 4000
	w.Arrival.Rate = 0
	w.Faults = nil
	n := make(map[string]float64)
	count := func(name string, yes bool) {
		if yes {
			n[name]++
		}
	}
	for _, pod := range pods(NewPlan(w, 1)) {
		n["pods"]++
		count("failed", pod.Failed)
		count("again", pod.Again > 0)
		if pod.Again < 0 || pod.Again > w.Driver.Lifespan.D()/4 {
			t.Errorf("a pod comes again after %s", pod.Again)
		}
		count("early", pod.DeletedEarly > 0)
		if pod.DeletedEarly < 0 || pod.DeletedEarly > latestDeletion {
			t.Errorf("a pod is deleted after %s", pod.DeletedEarly)
		}
		n["bad"] += float64(len(pod.Bad))
		if bad := len(pod.Bad); bad != 1 && bad != 2 {
			t.Errorf("a pod makes %d bad calls, the mean should be %v", bad, w.Calls.Bad)
		}
		for _, v := range pod.Volumes {
			n["volumes"]++
			count("inline", !v.Persistent)
			count("readOnly", v.ReadOnly)
			count("deep", v.Content.Deep)
			count("names", v.Content.Names)
			count("sparse", v.Content.Sparse)
			count("links", v.Content.Links)
			count("modes", v.Content.Modes)
			count("special", v.Content.Special)
			count("removed", v.RemovedAfter > 0)
			count("onFailure", v.OnFailure)
			count("limits", len(v.Attributes) > 0)
			count("lifespan", v.Lifespan > 0)
			if (v.Lifespan > 0) != (v.Attributes["lifespan"] != "") {
				t.Errorf("a volume with %v is kept for %s", v.Attributes, v.Lifespan)
			}
			count("pinned", v.PinnedAfter > 0)
			count("released", v.ReleasedAfter > 0)
			count("attached", v.AttachedAfter > 0)
			for _, after := range []time.Duration{v.RemovedAfter, v.PinnedAfter, v.ReleasedAfter, v.AttachedAfter, v.AttachedFor} {
				if after < 0 || after > w.Driver.Lifespan.D()/2 {
					t.Errorf("a person decides about a volume after %s", after)
				}
			}
			if v.PinnedAfter > 0 && v.PinnedAfter+v.PinnedFor <= w.Driver.Lifespan.D() {
				t.Errorf("a volume is pinned after %s for %s, which changes nothing", v.PinnedAfter, v.PinnedFor)
			}
			n["files"] += float64(v.Content.Files)
			n["bytes"] += float64(v.Content.Bytes)
			count("reordered", v.Unpublish.Reordered)
			count("before", v.Unpublish.Overtaken < 0)
			if v.Publish.Reordered || v.Publish.Overtaken != 0 || !v.Unpublish.Reordered && v.Unpublish.Overtaken != 0 ||
				v.Unpublish.Overtaken.Abs() > longestOvertake {
				t.Errorf("odd order of calls: %+v %+v", v.Publish, v.Unpublish)
			}
			for _, c := range []Call{v.Publish, v.Unpublish} {
				n["calls"]++
				count("together", c.Repeat == TwiceTogether)
				count("inTurn", c.Repeat == TwiceInTurn)
				count("cancelled", c.CancelAfter > 0)
				if c.CancelAfter < 0 || c.CancelAfter > latestCancel {
					t.Errorf("a call is cancelled after %s", c.CancelAfter)
				}
			}
		}
	}
	const left = 0.75 * 0.8 * 0.75 * 0.7 // are volumes about which no person decides, and no pod
	for _, c := range []struct {
		name string
		of   string
		want float64
	}{
		{"early", "pods", w.DeletedEarly},
		{"failed", "pods", w.Failed},
		// Some pods are deleted early, and about volumes of some a person decides.
		{"again", "pods", w.Again * (1 - w.DeletedEarly) * (left + left*left + left*left*left) / 3},
		{"bad", "pods", w.Calls.Bad},
		{"inline", "pods", 2},
		{"volumes", "pods", 2 + w.Volumes.Persistent},
		{"readOnly", "volumes", w.Volumes.ReadOnly},
		{"deep", "volumes", 0.3},
		{"names", "volumes", 0.3},
		{"sparse", "volumes", 0.3},
		{"links", "volumes", 0.3},
		{"modes", "volumes", 0.3},
		{"special", "volumes", 0.3},
		{"removed", "inline", w.Reading.Removed},
		{"onFailure", "inline", w.Volumes.OnFailure},
		{"limits", "inline", w.Volumes.Limits},
		{"lifespan", "inline", w.Volumes.Limits / 2},
		{"pinned", "inline", 0.75 * w.Reading.Pinned},
		{"released", "inline", 0.75 * 0.8 * w.Reading.Released},
		{"attached", "inline", 0.75 * 0.8 * 0.75 * w.Reading.Attached},
		{"files", "volumes", 5},
		{"reordered", "volumes", w.Calls.Reordered},
		{"before", "reordered", 0.5},
		{"together", "calls", w.Calls.Doubled / 2},
		{"inTurn", "calls", w.Calls.Doubled / 2},
		{"cancelled", "calls", w.Calls.Cancelled},
	} {
		near(t, c.name+" of "+c.of, n[c.name]/n[c.of], c.want, 0.02+0.03*c.want)
	}
	near(t, "bytes", n["bytes"]/n["volumes"]/float64(w.Contents.Bytes), 0.5, 0.02)
}

func TestLengths(t *testing.T) {
	const mean = time.Second
	for _, c := range []struct {
		of Distribution
		// What the distribution's theory says, in means.
		median, p99 float64
		longest     time.Duration
	}{
		{Constant, 1, 1, mean},
		{Uniform, 1, 1.98, 2 * mean},
		{Exponential, math.Ln2, math.Log(100), math.MaxInt64},
		{Lognormal, math.Exp(-0.5), math.Exp(2.3263 - 0.5), math.MaxInt64},
	} {
		t.Run(string(c.of), func(t *testing.T) {
			w := defaults()
			w.Pods = 20000
			w.Length = Length{Distribution: c.of, Mean: Duration(mean)}
			var lengths []time.Duration
			sum := 0.0
			p := NewPlan(w, 1)
			for i := range w.Pods {
				length := p.length(i)
				lengths = append(lengths, length)
				sum += length.Seconds()
			}
			slices.Sort(lengths)
			near(t, "mean", sum/float64(w.Pods), mean.Seconds(), 0.03)
			near(t, "median", lengths[w.Pods/2].Seconds(), c.median, 0.03)
			near(t, "p99", lengths[w.Pods*99/100].Seconds(), c.p99, 0.06*c.p99)
			if lengths[0] < 0 || lengths[w.Pods-1] > c.longest {
				t.Errorf("lengths go from %s to %s", lengths[0], lengths[w.Pods-1])
			}

			if got := p.Pod(7).Length; got != p.length(7) {
				t.Errorf("pod 7 runs %s, want %s", got, p.length(7))
			}

			w.Length.Max = Duration(mean + mean/2)
			cut := NewPlan(w, 1)
			for i := range w.Pods {
				if got, want := cut.length(i), min(p.length(i), mean+mean/2); got != want {
					t.Fatalf("pod %d runs %s with a maximum, want %s", i, got, want)
				}
			}
		})
	}
}

func TestDrainHasNoLengths(t *testing.T) {
	w := defaults()
	w.Drain, w.Parallel = true, w.Pods
	for _, pod := range pods(NewPlan(w, 1)) {
		if pod.Length != 0 {
			t.Fatalf("pod %d runs %s, it should run until the drain", pod.Index, pod.Length)
		}
	}
}

func TestArrival(t *testing.T) {
	w := defaults()
	w.Pods = 50000
	w.Arrival = Arrival{Rate: 100, Burst: 5}
	p := NewPlan(w, 1)
	var gaps []float64
	last := time.Duration(0)
	for i := range w.Pods {
		at := p.arrival(i)
		switch {
		case at < last:
			t.Fatalf("pod %d arrives at %s, before the pod before it", i, at)
		case i%5 != 0 && at != last:
			t.Fatalf("pod %d arrives at %s and not with its burst, at %s", i, at, last)
		case i%5 == 0:
			gaps = append(gaps, (at - last).Seconds())
		}
		last = at
	}
	near(t, "time until the last arrival", last.Seconds(), 500, 10)
	// In a Poisson process the times between are exponential: their standard
	// deviation is their mean.
	mean, square := 0.0, 0.0
	for _, g := range gaps {
		mean += g / float64(len(gaps))
	}
	for _, g := range gaps {
		square += (g - mean) * (g - mean) / float64(len(gaps))
	}
	near(t, "deviation of the times between bursts", math.Sqrt(square), 0.05, 0.002)

	w.Arrival.Rate = 0
	if at := NewPlan(w, 1).Pod(w.Pods - 1).Arrival; at != 0 {
		t.Errorf("without a rate the last pod arrives at %s, want at once", at)
	}
	// A last burst that is not full.
	w.Pods, w.Arrival = 7, Arrival{Rate: 100, Burst: 5}
	if p := NewPlan(w, 1); p.Pod(6).Arrival != p.Pod(5).Arrival || p.Pod(4).Arrival == p.Pod(5).Arrival {
		t.Error("the last pods are not a burst of their own")
	}
}
