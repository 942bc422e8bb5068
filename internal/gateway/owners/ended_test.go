package owners

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// dated are namespaces with the times of their creation.
type dated struct {
	uid   string
	since time.Time
	err   error
}

func (d *dated) Lookup(_ context.Context, namespace string) (volume.Tenancy, bool, error) {
	return volume.Tenancy{UID: d.uid, Since: d.since}, d.uid != "" && namespace == "ci", d.err
}

// TestGoneBeforeItsTurn: the watch of pods that end has shown the pod, and the API server does not have it any more.
func TestGoneBeforeItsTurn(t *testing.T) {
	made := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	ended := func(change func(*core.Pod)) *core.Pod {
		p := pod("ci", "build", "u1", "n1")
		p.CreationTimestamp = meta.NewTime(made)
		if change != nil {
			change(p)
		}
		return p
	}
	mirror := func(p *core.Pod) {
		p.UID = "mirror"
		p.Annotations[core.MirrorPodAnnotationKey] = "u1"
	}
	old := dated{uid: "ns", since: made.Add(-time.Hour)}
	for name, tc := range map[string]struct {
		pod       *core.Pod // nil: the watch has not shown it
		namespace dated
		node      string
		want      volume.Verdict
	}{
		"seen":                         {ended(nil), old, "n1", volume.Confirmed},
		"not seen":                     {nil, old, "n1", volume.Denied},
		"of a later namespace":         {ended(nil), dated{uid: "ns", since: made.Add(time.Hour)}, "n1", volume.Denied},
		"of a namespace as old":        {ended(nil), dated{uid: "ns", since: made}, "n1", volume.Denied},
		"of a namespace that is gone":  {ended(nil), dated{}, "n1", volume.Denied},
		"of another node":              {ended(nil), old, "n2", volume.Denied},
		"another pod of that name":     {ended(func(p *core.Pod) { p.UID = "u2" }), old, "n1", volume.Denied},
		"static":                       {ended(mirror), old, "n1", volume.Confirmed},
		"static, says another node":    {ended(func(p *core.Pod) { mirror(p); p.Spec.NodeName = "n2" }), old, "n1", volume.Denied},
		"of another name with the UID": {ended(func(p *core.Pod) { p.Name = "other" }), old, "n1", volume.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.Namespaces = &tc.namespace
			if tc.pod != nil {
				s.Ended(tc.pod)
			}
			for range 2 {
				got, ok := s.one(tc.node, "ci", "build", "u1")
				if !ok || got.Verdict != tc.want.String() {
					t.Fatalf("answered %+v, %t; want %s", got, ok, tc.want)
				}
				if tc.want == volume.Confirmed && (got.NamespaceUID != "ns" || got.Job != "nightly") {
					t.Errorf("answered %+v", got)
				}
			}
		})
	}
}

// TestEndedBeforeItsTurn: the API server has the pod still, and the watch has shown its end. What confirms the node costs no request; all
// else the API server says.
func TestEndedBeforeItsTurn(t *testing.T) {
	made := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	there := pod("ci", "build", "u1", "n1")
	there.CreationTimestamp = meta.NewTime(made)
	old := dated{uid: "ns", since: made.Add(-time.Hour)}
	mirror := pod("ci", "other", "mirror", "n1")
	mirror.CreationTimestamp, mirror.Annotations[core.MirrorPodAnnotationKey] = there.CreationTimestamp, "u1"
	elsewhere := there.DeepCopy()
	elsewhere.Spec.NodeName = "n2"
	for name, tc := range map[string]struct {
		seen      *core.Pod
		namespace dated
		node      string
		want      volume.Verdict
		reads     int
	}{
		"seen":                           {there, old, "n1", volume.Confirmed, 0},
		"not seen":                       {mirror, old, "n3", volume.Denied, 1},
		"another node asks":              {there, old, "n2", volume.Denied, 1},
		"of a namespace as old":          {there, dated{uid: "ns", since: made}, "n1", volume.Confirmed, 1},
		"a stranger's mirror of its UID": {mirror, old, "n1", volume.Confirmed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, there)
			s.Namespaces = &tc.namespace
			s.Ended(tc.seen)
			for range 2 {
				if got, ok := s.one(tc.node, "ci", "build", "u1"); !ok || got.Verdict != tc.want.String() || s.reads() != tc.reads {
					t.Fatalf("answered %+v, %t with %d requests; want %s with %d", got, ok, s.reads(), tc.want, tc.reads)
				}
			}
		})
	}
}

// TestEndedWhileItWaits: more pods are asked about than may be read, and end while they wait.
func TestEndedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pods = readsBurst + 1000
		var there []runtime.Object
		var asks []api.OwnerAsk
		for i := range pods {
			p := pod("ci", fmt.Sprint("p", i), fmt.Sprint("u", i), "n1")
			p.CreationTimestamp = meta.NewTime(time.Now())
			there = append(there, p)
			asks = append(asks, api.OwnerAsk{ID: p.Name, Namespace: "ci", Pod: p.Name, PodUID: string(p.UID)})
		}
		s := newStage(t, there...)
		s.Namespaces = &dated{uid: "ns", since: time.Now().Add(-time.Hour)}
		time.AfterFunc(time.Second, func() {
			for _, p := range there {
				s.Ended(p.(*core.Pod))
			}
		})
		began := time.Now()
		if answers := s.Ask(t.Context(), "n1", asks); len(answers) != pods || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("%d answers after %s", len(answers), time.Since(began))
		}
		if n := s.reads(); n < readsBurst || n > readsBurst+readsPerSecond+1 {
			t.Errorf("%d pods were read", n)
		}
	})
}

// TestGoneWhileNamespacesAreUnknown: that is no reason to deny it for good.
func TestGoneWhileNamespacesAreUnknown(t *testing.T) {
	s := newStage(t)
	p := pod("ci", "build", "u1", "n1")
	p.CreationTimestamp = meta.NewTime(time.Now())
	s.Ended(p)
	unknown := &dated{uid: "ns", err: errors.New("the API server is away")}
	s.Namespaces = unknown
	if got, ok := s.one("n1", "ci", "build", "u1"); ok {
		t.Errorf("answered %+v", got)
	}
	unknown.err = nil
	if got, ok := s.one("n1", "ci", "build", "u1"); !ok || got.Verdict != volume.Confirmed.String() {
		t.Errorf("answered %+v, %t", got, ok)
	}
}
