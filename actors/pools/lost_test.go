package pools

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// unprotect takes all finalizers off a resource, as people do who want to be rid of it.
func (w *world) unprotect(object client.Object) {
	w.Helper()
	object.SetFinalizers(nil)
	w.must(w.api.Update(w.ctx, object))
}

// TestDetachWithoutAResourceAsksTheArray: the resources may be lost, and Kubernetes lets another node
// write next.
func TestDetachWithoutAResourceAsksTheArray(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	a := w.attachment("pvc-1", "node1")
	w.unprotect(a)
	w.must(w.api.Delete(w.ctx, a))
	if on := w.on(); w.attachment("pvc-1", "node1") != nil || len(on.attachments) != 1 {
		t.Fatalf("on the array: %+v", on)
	}
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node1") }))
	if on := w.on(); len(on.attachments)+len(on.servers) != 0 {
		t.Fatalf("left on the array: %+v", on)
	}
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node2"})
	w.must(err)
	w.attachedOnce("pvc-1", "node2")
	w.must(w.Detach(w.ctx, "pvc-1", "node1"))
	w.attachedOnce("pvc-1", "node2")
}

// TestResourceWithoutAFinalizerIsCleanedUp: one that was made by hand, or from a backup, has none.
func TestResourceWithoutAFinalizerIsCleanedUp(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	_, err = w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-1")
	w.must(err)
	w.unprotect(w.volume("pvc-1"))
	w.unprotect(w.snapshot("snapshot-1"))
	w.unprotect(w.attachment("pvc-1", "node1"))
	w.must(w.Detach(w.ctx, "pvc-1", "node1"))
	w.must(w.DeleteSnapshot(w.ctx, "snapshot-1"))
	w.must(w.DeleteVolume(w.ctx, "pvc-1"))
	w.nothingLeft()
}

// occupied refuses to make anything, because it is in use.
type occupied struct{ *memArray }

func (occupied) CreateVolume(context.Context, array.NewVolume) (array.Volume, error) {
	return array.Volume{}, fmt.Errorf("%w: the pool is in use", array.ErrAttached)
}

func (occupied) CreateSnapshot(context.Context, array.NewSnapshot) (array.Snapshot, error) {
	return array.Snapshot{}, fmt.Errorf("%w: the group is in use", array.ErrAttached)
}

// TestNoFinalAnswerWhileAResourceIsLeft: the provisioner and the snapshotter would forget it.
func TestNoFinalAnswerWhileAResourceIsLeft(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	w.stop()
	usual := w.connect
	w.connect = func(*link) array.Array { return occupied{w.mem} }
	w.start()
	_, err := w.CreateVolume(w.ctx, newVolume("pvc-2", 1, false))
	w.wants(err, volume.ErrBusy, "the pool is in use")
	_, err = w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-1")
	w.wants(err, volume.ErrBusy, "the group is in use")
	if w.volume("pvc-2") == nil || w.snapshot("snapshot-1") == nil {
		t.Error("the resources are gone")
	}
	w.stop()
	w.connect = usual
	w.start()
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-2") }))
	w.must(w.repeat(func() error { return w.DeleteSnapshot(w.ctx, "snapshot-1") }))
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
	w.nothingLeft()
}

// TestCopyThatMayBeGrowingIsNotGrownTwice: the controller that has made the copy has ended, and the array
// carries out what it had asked for last.
func TestCopyThatMayBeGrowingIsNotGrownTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.create("pvc-1", 1, false)
		n := newVolume("pvc-2", 5, false)
		n.Source = pools.Source{Volume: "pvc-1"}
		w.stop()
		from := w.on().named(w, "pvc-1")
		comment := pools.NewComment("cluster", n.Claim).String()
		made, err := w.mem.CloneVolume(w.ctx, array.NewClone{Name: "pvc-2", Comment: comment, Group: from.Group})
		w.must(err)
		v := v1alpha1.PoolVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-2", Finalizers: []string{v1alpha1.Finalizer}},
			Spec: v1alpha1.PoolVolumeSpec{
				ClassName: "class", PoolName: "pool", Size: resource.MustParse("5Gi"), VolumeMode: v1alpha1.Filesystem, Protocol: v1alpha1.NFS,
				Management: v1alpha1.Managed, Source: &v1alpha1.VolumeSource{Volume: "pvc-1"},
				ClaimRef: &v1alpha1.ClaimRef{Namespace: n.Claim.Namespace, Name: n.Claim.Name},
			},
		}
		w.must(w.api.Create(w.ctx, &v))
		w.settle = 30 * time.Second
		w.start()
		time.Sleep(10 * time.Second)
		if _, err := w.CreateVolume(w.ctx, n); !repeatable(err) {
			t.Errorf("at once: %v", err)
		}
		_, err = w.mem.GrowVolume(w.ctx, made.ID, 5*array.GiB)
		w.must(err)
		w.must(w.repeat(func() error { _, err := w.CreateVolume(w.ctx, n); return err }))
		if got := w.on().named(w, "pvc-2"); got.Size != 5*array.GiB || w.grown(got.ID) != 1 {
			t.Errorf("%+v has grown %d times", got, w.grown(got.ID))
		}
	})
}

// TestDeletionSparesAnotherSnapshotOfTheID: an array that was set up anew gives its IDs out again.
func TestDeletionSparesAnotherSnapshotOfTheID(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	w.create("pvc-2", 1, false)
	for snapshot, of := range map[string]string{"snapshot-1": "pvc-1", "snapshot-2": "pvc-2"} {
		_, err := w.CreateSnapshot(w.ctx, snapshot, of)
		w.must(err)
	}
	s, other := w.snapshot("snapshot-1"), w.snapshot("snapshot-2")
	w.must(w.mem.DeleteSnapshot(w.ctx, s.Status.ID))
	s.Status.ID = other.Status.ID
	w.must(w.api.Status().Update(w.ctx, s))
	w.must(w.DeleteSnapshot(w.ctx, "snapshot-1"))
	if on := w.on(); w.snapshot("snapshot-1") != nil || len(on.snapshots) != 1 || on.snapshots[0].Name != "snapshot-2" {
		t.Errorf("on the array: %+v", on.snapshots)
	}
}
