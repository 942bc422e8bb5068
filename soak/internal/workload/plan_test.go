package workload

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

// everything is a workload in which everything can happen to a pod.
func everything() Workload {
	w := defaults()
	w.Pods = 3000
	w.Arrival = Arrival{Rate: 50, Burst: 7}
	w.DeletedEarly = 0.1
	w.Again = 0.1
	w.Volumes = Volumes{Min: 1, Max: 3, ReadOnly: 0.2, Persistent: 0.3, Pool: 5}
	w.Contents = Contents{
		Files: 10, Bytes: 1 << 20,
		Deep: 0.3, Names: 0.3, Sparse: 0.3, Links: 0.3, Modes: 0.3, Special: 0.3,
	}
	w.Calls = Calls{Doubled: 0.3, Cancelled: 0.2, Reordered: 0.1, Bad: 1.25}
	w.Driver.ReleaseGrace = Duration(time.Second)
	w.Failed, w.Volumes.OnFailure = 0.3, 0.4
	w.Volumes.Limits, w.Driver.MaxLifespan = 0.3, w.Driver.Lifespan
	w.Reading = Reading{Readers: 2, Removed: 0.25, Pinned: 0.2, Released: 0.25, Attached: 0.3}
	w.Faults = []Fault{
		{Kind: DaemonKill, Times: 10, For: Duration(time.Second)},
		{Kind: ClockStep, Times: 2, Step: Duration(time.Hour)},
		{Kind: ClockStep, Times: 3, Step: Duration(-time.Hour)},
		{Kind: BusyTarget, Times: 100, For: Duration(time.Second)},
		{Kind: PodRemoved, Times: 50},
	}
	return w
}

func pods(p Plan) []Pod {
	all := make([]Pod, p.Workload().Pods)
	for i := range all {
		all[i] = p.Pod(i)
	}
	return all
}

func TestSameSeedSamePlan(t *testing.T) {
	w := everything()
	p := NewPlan(w, 1)
	forwards := pods(p)
	again := NewPlan(w, 1)
	for i, want := range slices.Backward(forwards) {
		// Backwards: what is decided for a pod must not depend on the others.
		if got := again.Pod(i); !reflect.DeepEqual(got, want) {
			t.Fatalf("pod %d is another the second time:\n%+v\n%+v", i, want, got)
		}
	}
	if !reflect.DeepEqual(p.Faults(), again.Faults()) {
		t.Error("the same seed made other faults")
	}

	other := NewPlan(w, 2)
	for i, pod := range pods(other) {
		if pod.UID == forwards[i].UID || pod.Volumes[0].Content.Marker == forwards[i].Volumes[0].Content.Marker {
			t.Errorf("another seed made the same pod %d: %+v", i, pod)
		}
	}
	if reflect.DeepEqual(p.Faults(), other.Faults()) || reflect.DeepEqual(p.troubles, other.troubles) {
		t.Error("another seed made the same faults")
	}
	if other.Seed() != 2 || !reflect.DeepEqual(other.Workload(), w) {
		t.Errorf("the plan was made of seed %d and %+v", other.Seed(), other.Workload())
	}
}

// TestSeedOne pins the decisions: a seed from an old report has to stay good.
func TestSeedOne(t *testing.T) {
	p := NewPlan(everything(), 1)
	got := p.Pod(0)
	if want := "c82b930a-8ab2-45f4-b1b7-b9b84aeb3579"; got.UID != want {
		t.Errorf("the first pod of seed 1 is %s, it was %s", got.UID, want)
	}
	if want := 1649018371 * time.Nanosecond; got.Length != want {
		t.Errorf("the first pod of seed 1 runs %s, it ran %s", got.Length, want)
	}
	if want := 141404460 * time.Nanosecond; got.Arrival != want {
		t.Errorf("the first pod of seed 1 arrives at %s, it arrived at %s", got.Arrival, want)
	}
	if want := "741177914b2a4888"; got.Volumes[0].Content.Marker != want {
		t.Errorf("the first marker of seed 1 is %s, it was %s", got.Volumes[0].Content.Marker, want)
	}
	want := PlannedFault{
		Kind: DaemonKill, Number: 1, For: time.Second,
		Pods: 216, Delay: 132020041 * time.Nanosecond, Choice: 0x175c65198e6b8b21,
	}
	if f := p.Faults()[0]; f != want {
		t.Errorf("the first fault of seed 1 is %+v, it was %+v", f, want)
	}
}

// TestOneFieldLeavesTheOtherDecisions changes one field at a time and then
// erases what may come of it: nothing else may differ.
func TestOneFieldLeavesTheOtherDecisions(t *testing.T) {
	volumes := func(erase func(*Volume)) func(*Pod) {
		return func(p *Pod) {
			for i := range p.Volumes {
				erase(&p.Volumes[i])
			}
		}
	}
	content := func(erase func(*Content)) func(*Pod) {
		return volumes(func(v *Volume) { erase(&v.Content) })
	}
	for _, c := range []struct {
		name   string
		change func(*Workload)
		erase  func(*Pod)
	}{
		{"arrival.rate", func(w *Workload) { w.Arrival.Rate = 0 }, func(p *Pod) { p.Arrival = 0 }},
		{"arrival.burst", func(w *Workload) { w.Arrival.Burst = 1 }, func(p *Pod) { p.Arrival = 0 }},
		{"length", func(w *Workload) { w.Length = Length{Distribution: Lognormal, Mean: 1} }, func(p *Pod) { p.Length = 0 }},
		{"drain", func(w *Workload) { w.Drain = true }, func(p *Pod) { p.Length, p.Again = 0, 0 }},
		{"deletedEarly", func(w *Workload) { w.DeletedEarly = 0.9 }, func(p *Pod) { p.DeletedEarly, p.Again = 0, 0 }},
		{"again", func(w *Workload) { w.Again = 0.9 }, func(p *Pod) { p.Again = 0 }},
		{"owned", func(w *Workload) { w.Owned = 0.9 }, func(p *Pod) { p.Owner, p.Again = Owner{}, 0 }},
		{"volumes.readOnly", func(w *Workload) { w.Volumes.ReadOnly = 0.9 }, volumes(func(v *Volume) { v.ReadOnly = false })},
		{"volumes.persistent", func(w *Workload) { w.Volumes.Persistent = 0.9 }, func(p *Pod) {
			if i := len(p.Volumes) - 1; p.Volumes[i].Persistent {
				p.Volumes = p.Volumes[:i]
			}
		}},
		{"contents.files", func(w *Workload) { w.Contents.Files = 1 }, content(func(c *Content) { c.Files = 0 })},
		{"contents.bytes", func(w *Workload) { w.Contents.Bytes = 1 }, content(func(c *Content) { c.Bytes = 0 })},
		{"contents.deep", func(w *Workload) { w.Contents.Deep = 0.9 }, content(func(c *Content) { c.Deep = false })},
		{"contents.names", func(w *Workload) { w.Contents.Names = 0.9 }, content(func(c *Content) { c.Names = false })},
		{"contents.sparse", func(w *Workload) { w.Contents.Sparse = 0.9 }, content(func(c *Content) { c.Sparse = false })},
		{"contents.links", func(w *Workload) { w.Contents.Links = 0.9 }, content(func(c *Content) { c.Links = false })},
		{"contents.modes", func(w *Workload) { w.Contents.Modes = 0.9 }, content(func(c *Content) { c.Modes = false })},
		{"contents.special", func(w *Workload) { w.Contents.Special = 0.9 }, content(func(c *Content) { c.Special = false })},
		{"calls.doubled", func(w *Workload) { w.Calls.Doubled = 0.9 }, volumes(func(v *Volume) {
			v.Publish.Repeat, v.Unpublish.Repeat = Once, Once
		})},
		{"calls.cancelled", func(w *Workload) { w.Calls.Cancelled = 0.9 }, volumes(func(v *Volume) {
			v.Publish.CancelAfter, v.Unpublish.CancelAfter = 0, 0
		})},
		{"calls.reordered", func(w *Workload) { w.Calls.Reordered = 0.9 }, volumes(func(v *Volume) {
			v.Unpublish.Reordered, v.Unpublish.Overtaken = false, 0
		})},
		{"reading.removed", func(w *Workload) { w.Reading.Removed = 0.9 }, func(p *Pod) {
			p.Again = 0
			volumes(decideNothing)(p)
		}},
		{"failed", func(w *Workload) { w.Failed = 0.9 }, func(p *Pod) { p.Failed = false }},
		{"volumes.onFailure", func(w *Workload) { w.Volumes.OnFailure = 0.9 }, volumes(func(v *Volume) { v.OnFailure = false })},
		{"volumes.limits", func(w *Workload) { w.Volumes.Limits = 0.9 }, volumes(func(v *Volume) { v.Attributes, v.Lifespan = nil, 0 })},
		{"volumes.tight", func(w *Workload) { w.Volumes.Tight = 0.9 }, volumes(func(v *Volume) {
			v.Tight = false
			delete(v.Attributes, "sizeLimit")
			delete(v.Attributes, "inodeLimit")
			if len(v.Attributes) == 0 {
				v.Attributes = nil
			}
		})},
		{"reading.pinned", func(w *Workload) { w.Reading.Pinned = 0.9 }, func(p *Pod) {
			p.Again = 0
			volumes(decideNothing)(p)
		}},
		{"reading.released", func(w *Workload) { w.Reading.Released = 0.9 }, func(p *Pod) {
			p.Again = 0
			volumes(decideNothing)(p)
		}},
		{"reading.attached", func(w *Workload) { w.Reading.Attached = 0.9 }, func(p *Pod) {
			p.Again = 0
			volumes(decideNothing)(p)
		}},
		{"calls.bad", func(w *Workload) { w.Calls.Bad = 9 }, func(p *Pod) { p.Bad = nil }},
		{"another kind of fault", func(w *Workload) {
			w.Faults = append([]Fault{{Kind: DiskFull, Times: 9, For: 1}}, w.Faults...)
		}, func(*Pod) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := everything()
			w.Pods = 400
			before := NewPlan(w, 1)
			c.change(&w)
			after := NewPlan(w, 1)
			changed := false
			for i := range w.Pods {
				a, b := before.Pod(i), after.Pod(i)
				changed = changed || !reflect.DeepEqual(a, b)
				c.erase(&a)
				c.erase(&b)
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("more than that changed in pod %d:\n%+v\n%+v", i, a, b)
				}
			}
			if !changed && c.name != "another kind of fault" {
				t.Error("nothing changed, so this proves nothing")
			}
			var same []PlannedFault
			for _, f := range after.Faults() {
				if f.Kind != DiskFull {
					same = append(same, f)
				}
			}
			if !reflect.DeepEqual(before.Faults(), same) {
				t.Error("the faults of the node changed")
			}
		})
	}
}

// TestWorkloadIsKept reports whether a plan could be changed from outside.
func TestWorkloadIsKept(t *testing.T) {
	w := everything()
	p := NewPlan(w, 1)
	w.Faults[0].Times = 77
	p.Workload().Faults[0].Times = 88
	p.Faults()[0].Kind = "changed"
	if p.Workload().Faults[0].Times != 10 || p.Faults()[0].Kind == "changed" {
		t.Error("the plan shares its faults with its callers")
	}
}

func TestNames(t *testing.T) {
	markers := make(map[string]bool)
	uids := make(map[string]bool)
	handles := make(map[string]bool)
	uid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	inline := regexp.MustCompile(`^csi-[0-9a-f]{64}$`)
	w := everything()
	for i, pod := range pods(NewPlan(w, 1)) {
		if !uid.MatchString(pod.UID) || uids[pod.UID] || pod.Index != i {
			t.Fatalf("pod %d has the UID %s and the index %d", i, pod.UID, pod.Index)
		}
		uids[pod.UID] = true
		for j, v := range pod.Volumes {
			if markers[v.Content.Marker] || len(v.Content.Marker) != 16 {
				t.Errorf("pod %d has the marker %s", i, v.Content.Marker)
			}
			markers[v.Content.Marker] = true
			if v.Persistent {
				handles[v.ID] = true
				if j != len(pod.Volumes)-1 || v.Name != v.ID || v.ID[:4] != "pvc-" || !uid.MatchString(v.ID[4:]) {
					t.Errorf("pod %d has the persistent volume %d named %s with the ID %s", i, j, v.Name, v.ID)
				}
			} else if v.Name != [...]string{"data-0", "data-1", "data-2"}[j] || !inline.MatchString(v.ID) {
				t.Errorf("pod %d has the volume %d named %s with the ID %s", i, j, v.Name, v.ID)
			}
		}
	}
	if len(handles) != w.Volumes.Pool {
		t.Errorf("there are %d persistent volumes, want a pool of %d", len(handles), w.Volumes.Pool)
	}
}

// TestVolumeID pins the kubelet's formula, with an ID computed by sha256sum.
func TestVolumeID(t *testing.T) {
	got := volumeID("data-0", "0e3c5b92-6f0c-4b0e-9c8e-3a4a3f0e7b11")
	if want := "csi-909d363891fc0969211b2ddcb5f271eb2248419ef06f9ca0a49d0f0819106bdc"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// decideNothing takes away what a person does with a volume.
func decideNothing(v *Volume) {
	v.RemovedAfter, v.PinnedAfter, v.PinnedFor, v.ReleasedAfter = 0, 0, 0, 0
	v.AttachedAfter, v.AttachedFor = 0, 0
}
