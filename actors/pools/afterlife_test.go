package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// namespaceObject is the metadata of a namespace.
func namespaceObject(name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}

// kube is what tests of the afterlife do in the API server.
type kube interface {
	client.Reader
	client.Writer
}

// addClaim makes a claim, and its namespace where there is none.
func addClaim(t *testing.T, api kube, namespace, name string, annotations map[string]string) *metav1.PartialObjectMetadata {
	t.Helper()
	_ = api.Create(context.Background(), namespaceObject(namespace))
	c := rules.ClaimObject(namespace, name, "")
	c.Annotations = annotations
	if err := api.Create(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func dropClaim(t *testing.T, api kube, namespace, name string) {
	t.Helper()
	if err := api.Delete(context.Background(), rules.ClaimObject(namespace, name, "")); err != nil {
		t.Fatal(err)
	}
}

func wants(lifespan string) map[string]string {
	return map[string]string{v1alpha1.LifespanAnnotation: lifespan}
}

func restores(what string) map[string]string {
	return map[string]string{v1alpha1.RestoreAnnotation: what}
}

// bound makes a claim in ns and the volume for it.
func (w *world) bound(name string, size int64, block bool, annotations map[string]string) pools.Volume {
	w.Helper()
	addClaim(w.T, w.api, "ns", name, annotations)
	return w.create(name, size, block)
}

// retains deletes the claim of a volume, and the volume, which stays.
func (w *world) retains(name string) {
	w.Helper()
	dropClaim(w.T, w.api, "ns", name)
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, name) }))
}

// eraseRetained deletes what is retained, as a person does.
func (w *world) eraseRetained() {
	w.Helper()
	list := &v1alpha1.PoolVolumeList{}
	w.must(w.api.List(w.ctx, list))
	for i := range list.Items {
		v := &list.Items[i]
		if v.Status.State != v1alpha1.VolumeRetained {
			continue
		}
		w.must(client.IgnoreNotFound(w.api.Delete(w.ctx, v)))
		w.until("PoolVolume "+v.Name+" is gone", func() bool { return w.volume(v.Name) == nil })
	}
}

// isRetained checks a retained volume: its resource and the comment on the array say the same.
func (w *world) isRetained(name string, lifespan time.Duration) {
	w.Helper()
	have, v := w.on().named(w, name), w.volume(name)
	if v == nil || v.Status.State != v1alpha1.VolumeRetained || v.Status.RetainedSince == nil || v.Status.RetainedUntil == nil ||
		v.Status.RetainedUntil.Sub(v.Status.RetainedSince.Time) != lifespan || v.Spec.Lifespan == nil || v.Spec.Lifespan.Duration != lifespan {
		w.Fatalf("volume %s is %+v", name, v)
	}
	comment := pools.ParseComment(have.Comment)
	if comment.Retained == nil || !comment.Retained.Until.Equal(v.Status.RetainedUntil.Time) ||
		comment.ClaimUID != string(v.Spec.ClaimRef.UID) ||
		comment.ClaimUID == "" || comment.NamespaceUID != string(v.Spec.ClaimRef.NamespaceUID) || comment.NamespaceUID == "" {
		w.Errorf("its comment is %s, of %+v", have.Comment, v.Spec.ClaimRef)
	}
}

// isBack checks a volume that was given to another claim of ns.
func (w *world) isBack(name, claim string, size int64) {
	w.Helper()
	have, v := w.on().named(w, name), w.volume(name)
	if v == nil || v.Status.State != v1alpha1.VolumeReady || v.Status.RetainedSince != nil || v.Spec.RequestName != claim ||
		v.Spec.ClaimRef.Name != claim || v.Status.Capacity.Value() != size*gib || have.Size.Bytes() != size*gib || v.Status.ID != have.ID {
		w.Fatalf("volume %s is %+v on the array, and %+v", name, have, v)
	}
	comment := pools.ParseComment(have.Comment)
	if comment.Retained != nil || comment.Claim != "ns/"+claim || comment.ClaimUID != string(v.Spec.ClaimRef.UID) {
		w.Errorf("its comment is %s", have.Comment)
	}
	if n := len(w.on().volumes); n != 1 {
		w.Errorf("%d volumes on the array", n)
	}
}

// afterlifeScenarios are what has to survive a fault at each step.
func afterlifeScenarios() []scenario {
	const id, next = "pvc-1", "pvc-2"
	retained := func(block bool) func(*world) {
		return func(w *world) {
			w.bound(id, 2, block, wants("24h"))
			w.retains(id)
		}
	}
	restore := func(size int64, block bool) func(*world) error {
		return func(w *world) error {
			v, err := w.CreateVolume(w.ctx, newVolume(next, size, block))
			if err == nil && (v.ID != id || v.Size != size*gib) {
				w.Errorf("restored %+v", v)
			}
			return err
		}
	}
	return []scenario{
		{"retain", func(w *world) { w.bound(id, 2, false, wants("24h")); dropClaim(w.T, w.api, "ns", id) },
			func(w *world) error { return w.DeleteVolume(w.ctx, id) }, func(w *world) { w.isRetained(id, 24*time.Hour) }},
		{"retain by the class", func(w *world) {
			w.lifespan.Store(int64(time.Hour))
			w.bound(id, 2, true, nil)
			dropClaim(w.T, w.api, "ns", id)
		}, func(w *world) error { return w.DeleteVolume(w.ctx, id) }, func(w *world) { w.isRetained(id, time.Hour) }},
		{"restore", func(w *world) { retained(false)(w); addClaim(w.T, w.api, "ns", next, restores(id)) }, restore(2, false),
			func(w *world) { w.isBack(id, next, 2) }},
		{"restore a larger one", func(w *world) { retained(true)(w); addClaim(w.T, w.api, "ns", next, restores("latest")) }, restore(5, true),
			func(w *world) { w.isBack(id, next, 5); w.grewOnce(id) }},
		{"end what is retained", retained(false), func(w *world) error {
			v := w.volume(id)
			if v == nil {
				return nil
			}
			_, err := actors.Ask(w.ctx, w.Root, w.Supervisor(), &poolmessages.EndRetained{
				Routing: messages.RoutingTo(w.ctx, rules.KindVolume, id), Name: id, Since: v.Status.RetainedSince.Time, Lifespan: 24 * time.Hour,
				Reason: pools.Expired, Why: "a test",
			})
			return err
		}, func(w *world) { w.nothingLeft() }},
	}
}

// TestDeletedClaimIsRetained, and only found by who looks at what is retained.
func TestDeletedClaimIsRetained(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.create("pvc-2", 1, false)
	w.retains("pvc-1")
	w.isRetained("pvc-1", 24*time.Hour)
	w.must(w.DeleteVolume(w.ctx, "pvc-1")) // repeated
	w.isRetained("pvc-1", 24*time.Hour)

	if listed, _, err := w.Volumes(w.ctx, pools.Page{}); err != nil || len(listed) != 1 || listed[0].ID != "pvc-2" {
		t.Errorf("listed %+v, %v", listed, err)
	}
	for what, err := range map[string]error{
		"find":     second(w.Volume(w.ctx, "pvc-1")),
		"attach":   second(w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})),
		"grow":     second(w.GrowVolume(w.ctx, "pvc-1", 9*gib, 0)),
		"snapshot": second(w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-1")),
		"copy": second(w.CreateVolume(w.ctx, pools.NewVolume{
			Name: "pvc-3", Required: 2 * gib, Source: pools.Source{Volume: "pvc-1"},
		})),
	} {
		if !errors.Is(err, volume.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := w.CreateVolume(w.ctx, newVolume("pvc-1", 2, false)); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("the request of the deleted claim again: %v", err)
	}
}

// TestWhatIsNotRetained: a lifespan of nothing, a volume that is attached behind our back, what others have made.
func TestWhatIsNotRetained(t *testing.T) {
	t.Run("0s", func(t *testing.T) {
		w := newWorld(t)
		w.lifespan.Store(int64(time.Hour))
		w.bound("pvc-1", 1, false, wants("0s"))
		w.retains("pvc-1")
		w.nothingLeft()
	})
	t.Run("no lifespan", func(t *testing.T) {
		w := newWorld(t)
		w.bound("pvc-1", 1, false, nil)
		w.retains("pvc-1")
		w.nothingLeft()
	})
	t.Run("attached on the array", func(t *testing.T) {
		w := newWorld(t)
		w.bound("pvc-1", 1, false, wants("1h"))
		server, err := w.mem.EnsureServer(w.ctx, array.NewServer{Name: "by-hand", Address: "10.9.9.9"})
		w.must(err)
		_, err = w.mem.Attach(w.ctx, array.NewAttachment{ServerID: server.ID, VolumeID: w.volume("pvc-1").Status.ID, NFS: true})
		w.must(err)
		if err := w.DeleteVolume(w.ctx, "pvc-1"); !errors.Is(err, pools.ErrInUse) {
			t.Errorf("deleted: %v", err)
		}
		w.must(w.mem.Detach(w.ctx, w.volume("pvc-1").Status.ID, server.ID))
		w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
		w.isRetained("pvc-1", time.Hour)
	})
	t.Run("external", func(t *testing.T) {
		w := newWorld(t)
		w.lifespan.Store(int64(time.Hour))
		v := aVolume("x", "pool", 0)
		v.ResourceVersion, v.Spec.Management, v.Finalizers = "", v1alpha1.External, []string{v1alpha1.Finalizer}
		status := v.Status
		w.must(w.api.Create(w.ctx, v))
		v.Status = status
		w.must(w.api.Status().Update(w.ctx, v))
		w.until("it is known", func() bool { return second(w.Volume(w.ctx, "x")) == nil })
		w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "x") }))
		if w.volume("x") != nil {
			t.Errorf("retained as %+v", w.volume("x"))
		}
	})
}

// TestInvalidLifespanIsToldToTheClaim, and that of the class holds.
func TestInvalidLifespanIsToldToTheClaim(t *testing.T) {
	for _, text := range []string{"soon", "-1h", ""} {
		w := newWorld(t)
		events := w.recordEvents()
		w.lifespan.Store(int64(time.Hour))
		w.bound("pvc-1", 1, false, wants(text))
		if !events.has("pvc-1 Warning InvalidLifespan: the annotation pools.katbox.io/lifespan is") {
			t.Errorf("%q: events %q", text, events.list())
		}
		w.retains("pvc-1")
		w.isRetained("pvc-1", time.Hour)
	}
}

// recordEvents keeps the events from now on.
func (w *world) recordEvents() *eventLog {
	log := &eventLog{}
	w.events = log
	w.restart()
	return log
}

func (l *eventLog) has(text string) bool { return l.count(text) > 0 }

// TestLifespanFollowsTheClaim while there is one.
func TestLifespanFollowsTheClaim(t *testing.T) {
	w := newWorld(t)
	events := w.recordEvents()
	w.bound("pvc-1", 1, false, nil)
	says := func(want *time.Duration) {
		t.Helper()
		w.until(fmt.Sprint("the resource says ", want), func() bool {
			got := w.volume("pvc-1").Spec.Lifespan
			return got == nil && want == nil || got != nil && want != nil && got.Duration == *want
		})
	}
	change := func(annotations map[string]string) {
		t.Helper()
		c := rules.ClaimObject("", "", "")
		w.must(w.api.Get(w.ctx, client.ObjectKey{Namespace: "ns", Name: "pvc-1"}, c))
		c.Annotations = annotations
		w.must(w.api.Update(w.ctx, c))
	}
	day, hour := 24*time.Hour, time.Hour
	says(nil)
	change(wants("1d"))
	says(&day)
	change(nil)
	says(nil)
	change(wants("1h"))
	says(&hour)
	change(wants("tomorrow"))
	says(nil)
	if !events.has("pvc-1 Warning InvalidLifespan") {
		t.Errorf("events: %q", events.list())
	}
	w.stop()
	change(wants("1d")) // while no controller runs
	w.start()
	says(&day)
	w.retains("pvc-1")
	w.isRetained("pvc-1", day)
}

// TestPersistentVolumeMaySayTheLifespan where the claim did not.
func TestPersistentVolumeMaySayTheLifespan(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 1, false, nil)
	w.must(w.api.Create(w.ctx, persistentVolume("pvc-1", "pvc-1", wants("2h"))))
	w.retains("pvc-1")
	w.isRetained("pvc-1", 2*time.Hour)
}

func persistentVolume(name, handle string, annotations map[string]string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: testDriver, VolumeHandle: handle},
		}},
	}
}

// TestRestoreByNameUIDAndLatest: the answer is the volume of the deleted claim, once and for all.
func TestRestoreByNameUIDAndLatest(t *testing.T) {
	for _, by := range []string{"name", "UID", "latest"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			events := w.recordEvents()
			w.bound("pvc-1", 2, false, wants("24h"))
			what := map[string]string{"name": "pvc-1", "UID": string(w.volume("pvc-1").Spec.ClaimRef.UID), "latest": "latest"}[by]
			w.retains("pvc-1")
			addClaim(t, w.api, "ns", "pvc-2", restores(what))
			for range 2 {
				v, err := w.CreateVolume(w.ctx, newVolume("pvc-2", 2, false))
				if err != nil || v.ID != "pvc-1" || v.Size != 2*gib {
					t.Fatalf("restored %+v, %v", v, err)
				}
			}
			w.isBack("pvc-1", "pvc-2", 2)
			if w.volume("pvc-2") != nil {
				t.Error("there is a new volume, too")
			}
			for _, text := range []string{
				"pvc-2 Normal Restored: the data of claim pvc-1, which was deleted at", "pvc-1 Normal Retained: retained until",
			} {
				if !events.has(text) {
					t.Errorf("no event %q in %q", text, events.list())
				}
			}
			w.restart()
			if v, err := w.CreateVolume(w.ctx, newVolume("pvc-2", 2, false)); err != nil || v.ID != "pvc-1" {
				t.Fatalf("asked of the next controller: %+v, %v", v, err)
			}
			// It is retained anew, and a third claim gets it.
			w.lifespan.Store(int64(time.Hour))
			w.retains2("pvc-2", "pvc-1")
			w.isRetained("pvc-1", time.Hour)
			addClaim(t, w.api, "ns", "pvc-3", restores("pvc-2"))
			if v, err := w.CreateVolume(w.ctx, newVolume("pvc-3", 2, false)); err != nil || v.ID != "pvc-1" {
				t.Fatalf("restored again: %+v, %v", v, err)
			}
			w.isBack("pvc-1", "pvc-3", 2)
		})
	}
}

// retains2 deletes a claim that has the volume of an earlier one.
func (w *world) retains2(claim, id string) {
	w.Helper()
	dropClaim(w.T, w.api, "ns", claim)
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, id) }))
}

// TestRestoreIsRefused says what there would be, of this namespace alone.
func TestRestoreIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, what string
		change          func(*pools.NewVolume)
		want            error
		says            []string
		silent          []string
	}{
		"nothing of that name": {"ns", "other", nil, volume.ErrNotFound,
			[]string{
				`nothing is retained of a claim "other" in the namespace ns`, "there would be pvc-1 (UID uid-", "2Gi, PoolClass class, until ",
			}, nil},
		"another namespace": {"strangers", "pvc-1", nil, volume.ErrNotFound,
			[]string{`nothing is retained of a claim "pvc-1" in the namespace strangers`, "there is nothing that could be restored"},
			[]string{"2Gi"}},
		"latest of another namespace": {"strangers", "latest", nil, volume.ErrNotFound, []string{"there is nothing"}, []string{"pvc-1", "2Gi"}},
		"smaller": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Required = gib }, volume.ErrInvalid,
			[]string{"2Gi; ask for at least that"}, nil},
		"limit": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Limit = 2*gib - 1 }, pools.ErrOutOfRange, nil, nil},
		"block": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Block = true }, volume.ErrInvalid,
			[]string{"volume mode Filesystem"}, nil},
		"class": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Class = "silver" }, volume.ErrInvalid,
			[]string{"of the PoolClass class", "name a StorageClass of class"}, nil},
		"protocol": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Protocol = pools.ISCSI }, volume.ErrInvalid, []string{"reached over nfs"}, nil},
		"source": {"ns", "pvc-1", func(n *pools.NewVolume) { n.Source.Snapshot = "snapshot-1" }, volume.ErrInvalid,
			[]string{"its data can come from one of them"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			events := w.recordEvents()
			w.create("pvc-0", 1, false)
			_, err := w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-0")
			w.must(err)
			w.bound("pvc-1", 2, false, wants("24h"))
			w.retains("pvc-1")
			addClaim(t, w.api, test.namespace, "pvc-2", restores(test.what))
			n := newVolume("pvc-2", 2, false)
			n.Claim.Namespace = test.namespace
			if test.change != nil {
				test.change(&n)
			}
			_, err = w.CreateVolume(w.ctx, n)
			if !errors.Is(err, test.want) {
				t.Fatalf("answered %v, want %v", err, test.want)
			}
			for _, text := range test.says {
				if !strings.Contains(err.Error(), text) || !events.has("pvc-2 Warning RestoreFailed: ") {
					t.Errorf("answered %v with the events %q, want %q", err, events.list(), text)
				}
			}
			for _, text := range test.silent {
				if strings.Contains(strings.ReplaceAll(err.Error(), `claim "pvc-1"`, ""), text) {
					t.Errorf("answered %v, which tells of another namespace", err)
				}
			}
			w.isRetained("pvc-1", 24*time.Hour)
			if w.volume("pvc-2") != nil {
				t.Error("a new volume was made")
			}
		})
	}
}

// TestRestoreInALaterNamespaceOfTheName gets nothing: it may be another owner's.
func TestRestoreInALaterNamespaceOfTheName(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	w.must(w.api.Delete(w.ctx, namespaceObject("ns")))
	addClaim(t, w.api, "ns", "pvc-2", restores("latest"))
	_, err := w.CreateVolume(w.ctx, newVolume("pvc-2", 2, false))
	if !errors.Is(err, volume.ErrNotFound) || strings.Contains(err.Error(), "pvc-1") {
		t.Errorf("answered %v", err)
	}
}

// TestTwoClaimsThatWantOneVolume: one gets it, the other learns that.
func TestTwoClaimsThatWantOneVolume(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	errs := make(chan error)
	for _, name := range []string{"pvc-2", "pvc-3"} {
		addClaim(t, w.api, "ns", name, restores("pvc-1"))
		go func() {
			errs <- w.repeat(func() error {
				return second(w.CreateVolume(w.ctx, newVolume(name, 2, false)))
			})
		}()
	}
	one, two := <-errs, <-errs
	if one == nil {
		one, two = two, one
	}
	if two != nil || !errors.Is(one, volume.ErrNotFound) || !strings.Contains(one.Error(), "given to claim pvc-") {
		t.Errorf("answered %v and %v", one, two)
	}
	if n := len(w.on().volumes); n != 1 {
		t.Errorf("%d volumes on the array", n)
	}
}

// TestRestoreWaitsForTheEndOfTheFirstPersistentVolume: Kubernetes may still delete its volume, whose handle the
// next one has, too.
func TestRestoreWaitsForTheEndOfTheFirstPersistentVolume(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	pv := persistentVolume("pvc-1", "pvc-1", nil)
	w.must(w.api.Create(w.ctx, pv))
	w.bind("pvc-1", rules.ClaimObject("ns", "pvc-1", w.volume("pvc-1").Spec.ClaimRef.UID))
	w.retains("pvc-1")
	addClaim(t, w.api, "ns", "pvc-2", restores("pvc-1"))
	if _, err := w.CreateVolume(w.ctx, newVolume("pvc-2", 2, false)); !errors.Is(err, volume.ErrUnavailable) {
		t.Fatalf("answered %v", err)
	}
	w.isRetained("pvc-1", 24*time.Hour)
	w.must(w.api.Delete(w.ctx, pv))
	w.must(w.repeat(func() error { return second(w.CreateVolume(w.ctx, newVolume("pvc-2", 2, false))) }))
	w.isBack("pvc-1", "pvc-2", 2)

	next := persistentVolume("pvc-2", "pvc-1", nil)
	w.must(w.api.Create(w.ctx, next))
	next.Status.Phase = corev1.VolumeBound
	w.must(w.api.Status().Update(w.ctx, next))
	if err := w.DeleteVolume(w.ctx, "pvc-1"); !errors.Is(err, pools.ErrInUse) {
		t.Errorf("a late deletion for the first claim: %v", err)
	}
	w.isBack("pvc-1", "pvc-2", 2)
}

// TestRestoreWithoutRoomToGrow leaves the volume retained, for who asks for its size.
func TestRestoreWithoutRoomToGrow(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	before := w.volume("pvc-1").Status.RetainedUntil
	addClaim(t, w.api, "ns", "pvc-2", restores("pvc-1"))
	err := w.repeat(func() error { return second(w.CreateVolume(w.ctx, newVolume("pvc-2", 2000, false))) })
	if !errors.Is(err, volume.ErrNoSpace) {
		t.Fatalf("answered %v", err)
	}
	w.isRetained("pvc-1", 24*time.Hour)
	v := w.volume("pvc-1")
	if !v.Status.RetainedUntil.Equal(before) || v.Spec.ClaimRef.Name != "pvc-1" || v.Spec.Size.Value() != 2*gib || v.Spec.RequestName != "" {
		t.Errorf("it is %+v, %+v", v.Spec, v.Status)
	}
	addClaim(t, w.api, "ns", "pvc-3", restores("pvc-1"))
	w.must(second(w.CreateVolume(w.ctx, newVolume("pvc-3", 2, false))))
	w.isBack("pvc-1", "pvc-3", 2)
}

// TestAdministratorGivesToAnotherNamespace by spec.claimRef.
func TestAdministratorGivesToAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	addClaim(t, w.api, "bank", "pvc-2", restores("data"))
	n := newVolume("pvc-2", 2, false)
	n.Claim.Namespace = "bank"
	if _, err := w.CreateVolume(w.ctx, n); !errors.Is(err, volume.ErrNotFound) {
		t.Fatalf("before: %v", err)
	}
	v := w.volume("pvc-1")
	v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name = "bank", "data"
	w.must(w.api.Update(w.ctx, v))
	w.until("the volume is bank's", func() bool {
		v := w.volume("pvc-1")
		return v.Labels[v1alpha1.LabelNamespace] == "bank" && v.Spec.ClaimRef.UID == "" && !rules.UnfinishedVolume(v)
	})
	w.must(w.repeat(func() error { return second(w.CreateVolume(w.ctx, n)) }))
	v = w.volume("pvc-1")
	if c := v.Spec.ClaimRef; v.Status.State != v1alpha1.VolumeReady || c.Namespace != "bank" || c.Name != "pvc-2" {
		t.Errorf("it is %+v, %+v", v.Spec.ClaimRef, v.Status)
	}
}

// TestPersonChangesHowLongItIsKept by spec.lifespan.
func TestPersonChangesHowLongItIsKept(t *testing.T) {
	w := newWorld(t)
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	v := w.volume("pvc-1")
	v.Spec.Lifespan = &v1alpha1.Duration{Duration: 48 * time.Hour}
	w.must(w.api.Update(w.ctx, v))
	w.until("the status and the array say so", func() bool { return !rules.UnfinishedVolume(w.volume("pvc-1")) })
	w.isRetained("pvc-1", 48*time.Hour)
}

// TestPersonErasesWhatIsRetained.
func TestPersonErasesWhatIsRetained(t *testing.T) {
	w := newWorld(t)
	events := w.recordEvents()
	w.bound("pvc-1", 2, false, wants("24h"))
	w.retains("pvc-1")
	w.eraseRetained()
	w.nothingLeft()
	if !events.has("pvc-1 Normal Erased: the retained data of the claim ns/pvc-1 (volume pvc-1, 2Gi) are deleted: a person") {
		t.Errorf("events: %q", events.list())
	}
}
