package pools

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// bind binds a PersistentVolume to a claim, as Kubernetes does, and as an administrator may; nil: to none.
func (w *world) bind(pv string, c *metav1.PartialObjectMetadata) {
	w.Helper()
	o := &corev1.PersistentVolume{}
	w.must(w.api.Get(w.ctx, client.ObjectKey{Name: pv}, o))
	o.Spec.ClaimRef = nil
	if c != nil {
		o.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	}
	w.must(w.api.Update(w.ctx, o))
}

// rebound makes a claim in ns with a volume and a PersistentVolume that has a name of its own, and lets an administrator
// give that to another claim, in the namespace other.
func (w *world) rebound(pv string, second map[string]string, down bool) *metav1.PartialObjectMetadata {
	w.Helper()
	w.bound("pvc-1", 1, false, wants("24h"))
	w.must(w.api.Create(w.ctx, persistentVolume(pv, "pvc-1", nil)))
	w.bind(pv, rules.ClaimObject("ns", "pvc-1", w.volume("pvc-1").Spec.ClaimRef.UID))
	if down {
		w.stop()
	}
	dropClaim(w.T, w.api, "ns", "pvc-1")
	c := addClaim(w.T, w.api, "other", "second", second)
	w.bind(pv, c)
	return c
}

// namespaceUID reads the UID of a namespace.
func (w *world) namespaceUID(name string) types.UID {
	w.Helper()
	o := namespaceObject(name)
	w.must(w.api.Get(w.ctx, client.ObjectKey{Name: name}, o))
	return o.UID
}

// isOf waits until a volume is a claim's.
func (w *world) isOf(name, namespace, claim string) {
	w.Helper()
	w.until(name+" is that of "+namespace+"/"+claim, func() bool {
		c := w.volume(name).Spec.ClaimRef
		return c.Namespace == namespace && c.Name == claim
	})
	v := w.volume(name)
	if v.Spec.ClaimRef.NamespaceUID != w.namespaceUID(namespace) || v.Labels[v1alpha1.LabelNamespace] != namespace {
		w.Errorf("it is of %+v, labels %v", v.Spec.ClaimRef, v.Labels)
	}
	comment := pools.ParseComment(w.on().named(w, name).Comment)
	if comment.Claim != namespace+"/"+claim || comment.NamespaceUID != string(v.Spec.ClaimRef.NamespaceUID) {
		w.Errorf("an import would take it for that of %+v", comment)
	}
}

// ends deletes the second claim and its PersistentVolume, and the volume with it.
func (w *world) ends(pv, namespace, claim string) {
	w.Helper()
	dropClaim(w.T, w.api, namespace, claim)
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
	w.must(w.api.Delete(w.ctx, persistentVolume(pv, "pvc-1", nil)))
}

// getsBack lets a new claim of a namespace ask for what is retained.
func (w *world) getsBack(namespace, name, what string) error {
	w.Helper()
	addClaim(w.T, w.api, namespace, name, restores(what))
	n := newVolume(name, 1, false)
	n.Claim = pools.Claim{Namespace: namespace, Name: name}
	var v pools.Volume
	err := w.repeat(func() (err error) { v, err = w.CreateVolume(w.ctx, n); return err })
	if err == nil && v.ID != "pvc-1" {
		w.Errorf("restored %+v", v)
	}
	return err
}

// TestDataAreOfTheClaimOfThePersistentVolume: an administrator may give a PersistentVolume to another claim. What that
// leaves is its namespace's, and kept as long as it has said.
func TestDataAreOfTheClaimOfThePersistentVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		pv   string
		down bool // no controller runs meanwhile
	}{
		"while the controller runs":       {pv: "pvc-1"},
		"while no controller runs":        {pv: "pvc-1", down: true},
		"of a PersistentVolume by a hand": {pv: "by-hand"},
		"by a hand, no controller runs":   {pv: "by-hand", down: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rebound(tc.pv, wants("1h"), tc.down)
			if tc.down {
				w.start()
			}
			w.isOf("pvc-1", "other", "second")
			w.ends(tc.pv, "other", "second")
			w.isRetained("pvc-1", time.Hour)
			for _, what := range []string{"pvc-1", "second", "latest"} {
				if err := w.getsBack("ns", "pvc-of-"+what, what); !errors.Is(err, volume.ErrNotFound) {
					t.Errorf("the former owner asks for %s: %v", what, err)
				}
			}
			if err := w.getsBack("other", "pvc-back", "second"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSecondClaimWantsNothingKept: what a claim says holds for its data, whoever had the volume before.
func TestSecondClaimWantsNothingKept(t *testing.T) {
	for _, down := range []bool{false, true} {
		w := newWorld(t)
		w.lifespan.Store(int64(time.Hour))
		w.rebound("pvc-1", wants("0s"), down)
		if down {
			w.start()
		}
		w.isOf("pvc-1", "other", "second")
		w.ends("pvc-1", "other", "second")
		w.nothingLeft()
	}
}

// TestUnseenClaim: the second claim has come and gone while no controller ran. What it has left no claim gets by its own
// word, until an administrator says whose it is.
func TestUnseenClaim(t *testing.T) {
	w := newWorld(t)
	w.lifespan.Store(int64(time.Hour))
	c := w.rebound("pvc-1", wants("1d"), true)
	dropClaim(t, w.api, c.Namespace, c.Name)
	w.start()
	for range 2 {
		w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
	}
	w.isRetained("pvc-1", time.Hour) // the class's
	w.restart()
	w.must(w.api.Delete(w.ctx, persistentVolume("pvc-1", "pvc-1", nil)))
	for _, namespace := range []string{"ns", "other"} {
		for _, what := range []string{"pvc-1", "second", "latest"} {
			if err := w.getsBack(namespace, "pvc-"+namespace+"-"+what, what); !errors.Is(err, volume.ErrNotFound) {
				t.Errorf("a claim of %s asks for %s: %v", namespace, what, err)
			}
		}
	}
	v := w.volume("pvc-1")
	v.Spec.ClaimRef.NamespaceUID = w.namespaceUID("other")
	w.must(w.api.Update(w.ctx, v))
	if err := w.getsBack("other", "pvc-back", "second"); err != nil {
		t.Errorf("a claim of the namespace that it was given to: %v", err)
	}
}

// TestTakenFromItsClaim: a PersistentVolume that an administrator has taken from its claim is nobody's.
func TestTakenFromItsClaim(t *testing.T) {
	w := newWorld(t)
	w.rebound("pvc-1", wants("1h"), false)
	w.isOf("pvc-1", "other", "second")
	w.bind("pvc-1", nil)
	w.ends("pvc-1", "other", "second")
	w.isRetained("pvc-1", time.Hour)
	for _, namespace := range []string{"ns", "other"} {
		if err := w.getsBack(namespace, "pvc-"+namespace, "latest"); !errors.Is(err, volume.ErrNotFound) {
			t.Errorf("a claim of %s: %v", namespace, err)
		}
	}
}

// TestOwnerOfARestoredVolume: its former PersistentVolume has the same handle, and says nothing of the present claim.
func TestOwnerOfARestoredVolume(t *testing.T) {
	w := newWorld(t)
	w.lifespan.Store(int64(time.Hour))
	w.bound("pvc-1", 1, false, wants("24h"))
	w.retains("pvc-1")
	if err := w.getsBack("ns", "pvc-2", "latest"); err != nil {
		t.Fatal(err)
	}
	stranger := addClaim(t, w.api, "other", "stranger", nil)
	w.must(w.api.Create(w.ctx, persistentVolume("pvc-1", "pvc-1", nil)))
	w.bind("pvc-1", stranger)
	dropClaim(t, w.api, "ns", "pvc-2")
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
	if c := w.volume("pvc-1").Spec.ClaimRef; c.Namespace != "ns" || c.Name != "pvc-2" {
		t.Errorf("it is of %+v", c)
	}
}
