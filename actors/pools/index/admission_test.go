package index

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

func askAttach(node string, shared bool) *poolmessages.AttachVolume {
	return &poolmessages.AttachVolume{
		Routing: messages.Routing{ID: messages.KeyOf(rules.KindAttachment, "v."+node)},
		New:     pools.NewAttachment{Volume: "v", Node: node, Shared: shared},
	}
}

func attachedOn(node string, shared bool) *v1alpha1.PoolAttachment {
	return &v1alpha1.PoolAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "v." + node},
		Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "v", NodeName: node, PoolName: "p", Shared: shared},
	}
}

// TestWhatMayBeDone by what there is and what is under way.
func TestWhatMayBeDone(t *testing.T) {
	remove := &poolmessages.RemoveVolume{Routing: messages.Routing{ID: messages.KeyOf(rules.KindVolume, "v")}, Name: "v"}
	take := &poolmessages.TakeSnapshot{Routing: messages.Routing{ID: messages.KeyOf(rules.KindSnapshot, "s")}, Name: "s", Volume: "v"}
	from := func(s pools.Source) *poolmessages.CreateVolume {
		return &poolmessages.CreateVolume{Routing: messages.Routing{ID: messages.KeyOf(rules.KindVolume, "copy")},
			New: pools.NewVolume{Name: "copy", Source: s}}
	}
	copied, restored := from(pools.Source{Volume: "v"}), from(pools.Source{Snapshot: "s"})
	removeSnapshot := &poolmessages.RemoveSnapshot{Routing: messages.Routing{ID: messages.KeyOf(rules.KindSnapshot, "s")}, Name: "s"}
	grow := &poolmessages.GrowVolume{Routing: messages.Routing{ID: messages.KeyOf(rules.KindVolume, "v")}, Name: "v"}
	going := aVolume("v", "p", 2)
	going.DeletionTimestamp = &metav1.Time{}
	snapshot := &v1alpha1.PoolSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.PoolSnapshotSpec{VolumeName: "v", PoolName: "p"},
	}
	onA, sharedOnA := attachedOn("a", false), attachedOn("a", true)
	toA, toB := askAttach("a", false), askAttach("b", false)
	v := aVolume("v", "p", 1)
	for _, tc := range []struct {
		name  string
		there []*poolmessages.Seen
		under []messages.Request
		asked messages.Request
		want  error
	}{
		{"attach", []*poolmessages.Seen{{Object: v}}, nil, toA, nil},
		{"attach what there is not", nil, nil, toA, volume.ErrNotFound},
		{"attach again", []*poolmessages.Seen{{Object: v}, {Object: onA}}, nil, toA, nil},
		{"attach elsewhere", []*poolmessages.Seen{{Object: v}, {Object: onA}}, nil, toB, pools.ErrInUse},
		{"attach elsewhere, both shared", []*poolmessages.Seen{{Object: v}, {Object: sharedOnA}}, nil, askAttach("b", true), nil},
		{"attach elsewhere, the first not shared", []*poolmessages.Seen{{Object: v}, {Object: onA}}, nil, askAttach("b", true), pools.ErrInUse},
		{"attach elsewhere, the second not shared", []*poolmessages.Seen{{Object: v}, {Object: sharedOnA}}, nil, toB, pools.ErrInUse},
		{"attach while that is under way", []*poolmessages.Seen{{Object: v}}, []messages.Request{toA}, toA, nil},
		{"attach elsewhere while that is under way", []*poolmessages.Seen{{Object: v}}, []messages.Request{toA}, toB, pools.ErrInUse},
		{"attach while it is deleted", []*poolmessages.Seen{{Object: v}}, []messages.Request{remove}, toA, volume.ErrBusy},
		{"attach what is to be deleted", []*poolmessages.Seen{{Object: going}}, nil, toA, volume.ErrBusy},
		{"delete", []*poolmessages.Seen{{Object: v}}, nil, remove, nil},
		{"delete what there is not", nil, nil, remove, nil},
		{"delete again", []*poolmessages.Seen{{Object: going}}, []messages.Request{remove}, remove, nil},
		{"delete what is attached", []*poolmessages.Seen{{Object: v}, {Object: onA}}, nil, remove, pools.ErrInUse},
		{"delete what is being attached", []*poolmessages.Seen{{Object: v}}, []messages.Request{toA}, remove, pools.ErrInUse},
		{"delete what has snapshots", []*poolmessages.Seen{{Object: v}, {Object: snapshot}}, nil, remove, pools.ErrInUse},
		{"delete while a snapshot is taken", []*poolmessages.Seen{{Object: v}}, []messages.Request{take}, remove, volume.ErrBusy},
		{"delete while it is copied", []*poolmessages.Seen{{Object: v}}, []messages.Request{copied}, remove, volume.ErrBusy},
		{"snapshot", []*poolmessages.Seen{{Object: v}}, nil, take, nil},
		{"snapshot of what there is not", nil, nil, take, volume.ErrNotFound},
		{"the snapshot that there is", []*poolmessages.Seen{{Object: snapshot}}, nil, take, nil},
		{"snapshot while it is deleted", []*poolmessages.Seen{{Object: v}}, []messages.Request{remove}, take, volume.ErrBusy},
		{"copy", []*poolmessages.Seen{{Object: v}}, nil, copied, nil},
		{"copy what there is not", nil, nil, copied, volume.ErrNotFound},
		{"copy while it is deleted", []*poolmessages.Seen{{Object: v}}, []messages.Request{remove}, copied, volume.ErrBusy},
		{"restore", []*poolmessages.Seen{{Object: v}, {Object: snapshot}}, nil, restored, nil},
		{"restore what there is not", nil, nil, restored, volume.ErrNotFound},
		{"restore while the snapshot is deleted", []*poolmessages.Seen{{Object: snapshot}}, []messages.Request{removeSnapshot}, restored,
			volume.ErrBusy},
		{"delete a snapshot", []*poolmessages.Seen{{Object: snapshot}}, nil, removeSnapshot, nil},
		{"delete a snapshot while it is restored", []*poolmessages.Seen{{Object: snapshot}}, []messages.Request{restored}, removeSnapshot,
			volume.ErrBusy},
		{"grow", []*poolmessages.Seen{{Object: v}}, nil, grow, nil},
		{"grow what there is not", nil, nil, grow, volume.ErrNotFound},
		{"grow what is to be deleted", []*poolmessages.Seen{{Object: going}}, nil, grow, volume.ErrBusy},
	} {
		o := NewAdmission(New(), nil)
		for _, m := range tc.there {
			o.See(m)
		}
		for _, m := range tc.under {
			if err := o.Admit(m); err != nil {
				t.Errorf("%s: what is under way: %v", tc.name, err)
			}
		}
		if err := o.Admit(tc.asked); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

// TestAttachmentThatNoCallHasAskedFor may be made where nothing is in its way.
func TestAttachmentThatNoCallHasAskedFor(t *testing.T) {
	with := func(a *v1alpha1.PoolAttachment, state v1alpha1.AttachmentState, server string, created int64) *poolmessages.Seen {
		a = a.DeepCopy()
		a.Status.State, a.Status.ServerID, a.CreationTimestamp = state, server, metav1.Unix(created, 0)
		return &poolmessages.Seen{Object: a}
	}
	a, b := attachedOn("a", false), attachedOn("b", false)
	sharedA, sharedB := attachedOn("a", true), attachedOn("b", true)
	for name, tc := range map[string]struct {
		there []*poolmessages.Seen
		under []messages.Request
		want  error
	}{
		"none":              {nil, nil, nil},
		"alone":             {[]*poolmessages.Seen{with(b, "", "", 1)}, nil, nil},
		"the older one":     {[]*poolmessages.Seen{with(b, "", "", 1), with(a, "", "", 2)}, nil, nil},
		"the younger one":   {[]*poolmessages.Seen{with(b, "", "", 2), with(a, "", "", 1)}, nil, pools.ErrInUse},
		"of the same age":   {[]*poolmessages.Seen{with(b, "", "", 1), with(a, "", "", 1)}, nil, pools.ErrInUse},
		"made on a server":  {[]*poolmessages.Seen{with(b, "", "", 1), with(a, v1alpha1.AttachmentReady, "srv", 2)}, nil, pools.ErrInUse},
		"failed there":      {[]*poolmessages.Seen{with(b, "", "", 1), with(a, v1alpha1.AttachmentFailed, "srv", 2)}, nil, pools.ErrInUse},
		"refused":           {[]*poolmessages.Seen{with(b, "", "", 2), with(a, v1alpha1.AttachmentFailed, "", 1)}, nil, nil},
		"on its own server": {[]*poolmessages.Seen{with(b, v1alpha1.AttachmentAttaching, "srv", 2), with(a, "", "", 1)}, nil, nil},
		"shared":            {[]*poolmessages.Seen{with(sharedB, "", "", 2), with(sharedA, "", "", 1)}, nil, nil},
		"a call":            {[]*poolmessages.Seen{with(b, "", "", 1)}, []messages.Request{askAttach("a", false)}, pools.ErrInUse},
		"a call for itself": {[]*poolmessages.Seen{with(b, "", "", 1)}, []messages.Request{askAttach("b", false)}, nil},
	} {
		o := NewAdmission(New(), nil)
		for _, under := range tc.under { // it was let through before the other one was seen
			op, _ := o.judge(under)
			o.admitted.add(under.Route().ID, op)
		}
		for _, s := range tc.there {
			o.See(s)
		}
		if err := o.MayFinish("v.b"); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// TestWhatAnotherDriverHas does not exist for the one that asks, even if it is retained, or not made yet: it is not deleted.
func TestWhatAnotherDriverHas(t *testing.T) {
	retained := aVolume("v", "p", 1)
	retained.Spec.Protocol, retained.Status.State = v1alpha1.Local, v1alpha1.VolumeRetained
	snapshot := &v1alpha1.PoolSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.PoolSnapshotSpec{VolumeName: "v", PoolName: "p"},
	}
	ask := func(kind pools.Kind) map[string]func(*Admission) (bool, error) {
		return map[string]func(*Admission) (bool, error){
			"delete": func(o *Admission) (bool, error) {
				m := &poolmessages.RemoveVolume{Name: "v", Kind: kind}
				m.Prepare()
				return answered(t, o, m, m)
			},
			"delete a snapshot": func(o *Admission) (bool, error) {
				m := &poolmessages.RemoveSnapshot{Name: "s", Kind: kind}
				m.Prepare()
				return answered(t, o, m, m)
			},
			"grow": func(o *Admission) (bool, error) {
				m := &poolmessages.GrowVolume{Name: "v", Kind: kind}
				m.Prepare()
				return answered(t, o, m, m)
			},
		}
	}
	for _, kind := range []pools.Kind{pools.KindArray, pools.KindLocal, ""} {
		for name, asked := range ask(kind) {
			o := NewAdmission(New(), nil)
			o.See(&poolmessages.Seen{Object: retained})
			o.See(&poolmessages.Seen{Object: snapshot})
			done, err := asked(o)
			if done != (kind == pools.KindArray) {
				t.Errorf("%s by the driver of %q is answered: %t", name, kind, done)
			}
			if is := errors.Is(err, volume.ErrNotFound); done && is != (name == "grow") {
				t.Errorf("%s by the driver of %q: %v", name, kind, err)
			}
		}
	}
}

// answered asks the admission, and returns its answer if it has answered.
func answered[R any](t *testing.T, o *Admission, m messages.Request, q messages.Question[R]) (bool, error) {
	t.Helper()
	if !o.IsElsewhere(m) {
		return false, nil
	}
	_, err := q.Wait(t.Context())
	return true, err
}
