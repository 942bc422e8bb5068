package kubelet

import (
	"fmt"
	"slices"
	"testing"

	"github.com/katbox/katbox/soak/internal/workload"
)

// somePod is a pod with inline volumes a, b, ... and perhaps the persistent
// volume pv.
func somePod(uid string, inline int, persistent bool) *Pod {
	plan := workload.Pod{UID: uid, Name: "pod-" + uid}
	for i := range inline {
		name := string(rune('a' + i))
		plan.Volumes = append(plan.Volumes, workload.Volume{Name: name, ID: "csi-" + uid + name})
	}
	if persistent {
		plan.Volumes = append(plan.Volumes, workload.Volume{Name: "pv", ID: "pv", Persistent: true})
	}
	return NewPod("/kubelet", "/work", plan)
}

func (a action) String() string {
	switch {
	case a.volume != nil:
		return fmt.Sprintf("%s %s/%s", a.kind, a.volume.Pod.Plan.UID, a.volume.Plan.Name)
	case a.pod != nil:
		return fmt.Sprintf("%s %s", a.kind, a.pod.Plan.UID)
	default:
		return fmt.Sprintf("%s %s", a.kind, a.handle)
	}
}

func TestReconcile(t *testing.T) {
	// A world is set up by what is known of the volumes, by the pods' order.
	type world struct {
		pods    []*Pod
		phases  []phase
		states  [][]mountState
		device  bool
		staged  mountState
		settled bool
	}
	one := func(p *Pod, ph phase, states ...mountState) world {
		return world{pods: []*Pod{p}, phases: []phase{ph}, states: [][]mountState{states}}
	}
	with := func(w world, change func(*world)) world {
		change(&w)
		return w
	}
	for _, row := range []struct {
		name  string
		world world
		want  []string
	}{
		{"a new pod", one(somePod("p", 2, false), running, absent, absent),
			[]string{"mount volume p/a", "mount volume p/b"}},
		{"one volume is uncertain", one(somePod("p", 2, false), running, mounted, uncertain),
			[]string{"mount volume p/b"}},
		{"all are mounted", one(somePod("p", 2, false), running, mounted, mounted),
			[]string{"start pod p"}},
		{"a pod without volumes", one(somePod("p", 0, false), running),
			[]string{"start pod p"}},
		{"it is over", one(somePod("p", 3, false), finished, mounted, uncertain, absent),
			[]string{"unmount volume p/a", "unmount volume p/b", "abandon volume p/c"}},
		{"it is over and all is down", with(one(somePod("p", 1, false), finished, absent), func(w *world) { w.settled = true }),
			[]string{"remove pod p"}},
		{"it was unmounted before, and may be mounted again",
			with(one(somePod("p", 1, false), finished, uncertain), func(w *world) { w.settled = true }),
			[]string{"unmount volume p/a"}},
		{"it was forgotten", one(somePod("p", 2, false), forgotten, absent, absent),
			[]string{"drop pod p"}},
		{"a persistent volume is not attached", one(somePod("p", 1, true), running, absent, absent),
			[]string{"mount volume p/a", "verify attach p/pv"}},
		{"a persistent volume is attached", with(one(somePod("p", 0, true), running, absent), func(w *world) { w.device = true }),
			[]string{"mount volume p/pv"}},
		{"unmounts come before mounts, and mounts before devices", world{
			pods:   []*Pod{somePod("new", 1, false), somePod("old", 1, true)},
			phases: []phase{running, finished},
			states: [][]mountState{{absent}, {mounted, absent}},
			device: true, staged: mounted,
		}, []string{"unmount volume old/a", "abandon volume old/pv", "mount volume new/a", "unmount device pv"}},
		{"a pod still uses the device", world{
			pods:   []*Pod{somePod("p", 0, true), somePod("q", 0, true)},
			phases: []phase{finished, running},
			states: [][]mountState{{mounted}, {mounted}},
			device: true, staged: mounted,
		}, []string{"unmount volume p/pv", "start pod q"}},
		{"a pod may still use the device", with(one(somePod("p", 0, true), finished, uncertain), func(w *world) {
			w.device, w.staged = true, mounted
		}), []string{"unmount volume p/pv"}},
		{"the device may be staged", with(one(somePod("p", 0, true), finished, absent), func(w *world) {
			w.device, w.staged, w.settled = true, uncertain, true
		}), []string{"unmount device pv", "remove pod p"}},
		{"the device is not staged", with(one(somePod("p", 0, true), finished, absent), func(w *world) {
			w.device, w.settled = true, true
		}), []string{"detach device pv", "remove pod p"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newActual()
			var seen []observation
			for i, p := range row.world.pods {
				seen = append(seen, observation{pod: p, phase: row.world.phases[i]})
				for j, v := range p.Volumes {
					a.set(v, mount{state: row.world.states[i][j]})
					if row.world.settled {
						v.settle(Unpublished)
					}
				}
			}
			if row.world.device {
				a.devices["pv"] = &device{mount: mount{state: row.world.staged}}
			}
			var got []string
			for _, one := range a.reconcile(seen) {
				got = append(got, one.String())
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("actions\n%q, want\n%q", got, row.want)
			}
		})
	}
}

// BenchmarkReconcile is a pass over a node with 500 pods at rest.
func BenchmarkReconcile(b *testing.B) {
	a := newActual()
	var seen []observation
	for i := range 500 {
		p := somePod(fmt.Sprint(i), 3, false)
		seen = append(seen, observation{pod: p})
		for _, v := range p.Volumes {
			a.set(v, mount{state: mounted})
		}
	}
	for b.Loop() {
		a.reconcile(seen)
	}
}
