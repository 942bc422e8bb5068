package outcomes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/outcome"
)

// large is the outcome of a pod with as many volumes as one may have, with names as long as they may be.
func large(uid string) api.PodOutcome {
	o := api.PodOutcome{PodUID: uid, Outcome: "Failed"}
	for i := range outcome.MostVolumes {
		o.Volumes = append(o.Volumes, fmt.Sprintf("v%03d-%s", i, strings.Repeat("a", 58)))
		o.Drivers = append(o.Drivers, strings.Repeat("d", 63))
	}
	return o
}

// TestLargePods: pods with very many volumes take no node's outcomes of other pods away: a request is
// never longer than a node reads. Nor do they take all memory.
func TestLargePods(t *testing.T) {
	s := newScene(t)
	s.nodes.away["n1"] = true
	var want []string
	for i := range 200 {
		o := large(fmt.Sprint("u", i))
		s.add("n1", o)
		want = append(want, fmt.Sprintf("n1 u%d Failed %v", i, o.Volumes))
	}
	s.add("n1", how("small"))
	want = append(want, "n1 small Failed [a]")
	s.idle("n1")
	s.nodes.set(func() {
		s.nodes.away["n1"] = false
		s.nodes.full = func(_ string, o api.Outcomes) {
			if text, err := json.Marshal(o); err != nil || len(text) > 1<<20 {
				t.Errorf("%d bytes at once, %v", len(text), err)
			}
		}
	})
	s.Connected("n1")
	s.wantTold(want...)

	s.idle("n1")
	s.limits = limits{ofNode: 2000, inAll: 1000}
	for i := range 100 {
		s.add("n1", large(fmt.Sprint("x", i)))
	}
	s.idle("n1")
	volumes := 0
	for _, o := range s.Outcomes.nodes["n1"].items {
		volumes += len(o.Volumes)
	}
	if most := 4 * s.limits.inAll; volumes > most {
		t.Errorf("%d volumes are remembered, want at most %d", volumes, most)
	}
}

// TestMalformedUID: a mirror pod with a UID that no node takes is left out: it would be refused
// together with others.
func TestMalformedUID(t *testing.T) {
	for uid, want := range map[string]bool{"0123456789abcdef": true, "../x": false, "": false, strings.Repeat("a", 1000): false} {
		p := pod("n1", "u", core.PodFailed)
		p.Annotations = map[string]string{core.MirrorPodAnnotationKey: uid}
		if _, ok := ofPod(p); ok != want {
			t.Errorf("%.20q: taken %t, want %t", uid, ok, want)
		}
	}
}

// TestNamesThatNoNodeTakes: a pod's volumes with such names are left out; those of other names, and other pods,
// are told.
func TestNamesThatNoNodeTakes(t *testing.T) {
	for name, want := range map[string]bool{
		"scratch": true, strings.Repeat("a", 63): true, "": false, "../x": false, "A": false, "a\x00": false, strings.Repeat("a", 254): false,
	} {
		p := pod("n1", "u", core.PodFailed)
		other := p.Spec.Volumes[1]
		p.Spec.Volumes[1].Name, other.Name = name, "other"
		p.Spec.Volumes = append(p.Spec.Volumes, other)
		o, ok := ofPod(p)
		if !ok || slices.Contains(o.Volumes, name) != want || !slices.Contains(o.Volumes, "other") || len(o.Volumes) != len(o.Drivers) {
			t.Errorf("%.20q: %q, taken %t, want %t", name, o.Volumes, ok, want)
		}
	}
	p := pod("n1", "u", core.PodFailed)
	p.Spec.Volumes[1].CSI.Driver = strings.Repeat("d", 250<<10)
	if o, ok := ofPod(p); ok {
		t.Errorf("the driver has %d bytes", len(o.Drivers[0]))
	}
}
