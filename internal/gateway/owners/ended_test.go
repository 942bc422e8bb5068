package owners

import (
	"context"
	"errors"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

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
