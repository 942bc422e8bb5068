package pools

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestChangedCommentDoesNotForgetAVolume: people edit comments, and arrays may shorten them.
func TestChangedCommentDoesNotForgetAVolume(t *testing.T) {
	for name, comment := range map[string]string{
		"by a person": "finance, do not touch", "none": "", "of another claim": `{"cluster":"cluster","pvc":"ns/renamed"}`,
		"cut off": `{"cluster":"clus`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("pvc-1", 1, false)
			w.must(w.mem.CommentVolume(w.ctx, w.volume("pvc-1").Status.ID, comment))
			w.must(w.DeleteVolume(w.ctx, "pvc-1"))
			w.nothingLeft()
		})
	}
}

// TestVolumeThatMayBeOursIsNotForgotten: its ID was never written down, and its comment says nothing.
func TestVolumeThatMayBeOursIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	v := w.volume("pvc-1")
	id := v.Status.ID
	v.Status = v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeFailed}
	w.must(w.api.Status().Update(w.ctx, v))
	w.must(w.mem.CommentVolume(w.ctx, id, "?"))
	w.wants(w.DeleteVolume(w.ctx, "pvc-1"), volume.ErrUncertain, id)
	w.must(w.mem.CommentVolume(w.ctx, id, ""))
	w.until("the deletion goes on", func() bool { return w.volume("pvc-1") == nil })
	w.nothingLeft()
}

// TestAttachmentsOfAnEarlierRun: a request of an earlier run is carried out 20 s after the start of the next, which does not believe
// what it sees before: the volume is not attached to the node again, where its pods would lose it, nor said to be detached.
func TestAttachmentsOfAnEarlierRun(t *testing.T) {
	detach := func(w *world) error { return w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node1") }) }
	for name, test := range map[string]struct {
		// left is what the earlier run leaves, which it stops; ask is what the next one is asked for. late: attach comes late, not detach.
		left func(w *world, silent *atomic.Bool, on array.NewAttachment)
		ask  func(w *world)
		late bool
		want int
	}{
		"a detach whose resource is being deleted": {func(w *world, silent *atomic.Bool, _ array.NewAttachment) {
			w.attach("pvc-1", "node1")
			w.stop()
			w.must(w.api.Delete(w.ctx, w.attachment("pvc-1", "node1")))
			silent.Store(true) // the array does not answer the next run at first
		}, func(w *world) {
			w.must(detach(w))
			w.attach("pvc-1", "node1")
		}, false, 2},
		"a detach of another mode, asked for twice and carried out once": {func(w *world, silent *atomic.Bool, on array.NewAttachment) {
			on.ReadOnly = true
			_, err := w.mem.Attach(w.ctx, on)
			w.must(err)
			silent.Store(true)
			_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
			w.wants(err, volume.ErrUnavailable, "pvc-1")
			w.stop()
			w.must(w.mem.Detach(w.ctx, on.VolumeID, on.ServerID))
		}, func(w *world) { w.attach("pvc-1", "node1") }, false, 2},
		"an attach, asked for twice and carried out once": {func(w *world, _ *atomic.Bool, _ array.NewAttachment) {
			w.attach("pvc-1", "node1")
			w.stop()
		}, func(w *world) { w.must(detach(w)) }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var silent atomic.Bool
				w := newMemWorld(t, newMemArray(), func(a *memArray) array.Array { return silentOnce{a, &silent} })
				w.create("pvc-1", 1, true)
				w.create("pvc-2", 1, true)
				w.attach("pvc-2", "node1") // the node's server record stays for it
				on := array.NewAttachment{VolumeID: w.volume("pvc-1").Status.ID, ServerID: w.on().servers[0].ID}
				test.left(w, &silent, on)
				w.settle = 30 * time.Second
				w.start()
				time.AfterFunc(20*time.Second, func() {
					if test.late {
						_, _ = w.mem.Attach(w.ctx, on)
						return
					}
					_ = w.mem.Detach(w.ctx, on.VolumeID, on.ServerID)
				})
				test.ask(w)
				time.Sleep(time.Minute)
				if on := w.on(); len(on.attachments) != test.want {
					t.Errorf("the array has the attachments %+v", on.attachments)
				}
			})
		})
	}
}

// silentOnce is an array that does not answer the next detach.
type silentOnce struct {
	array.Array
	silent *atomic.Bool
}

func (a silentOnce) Detach(ctx context.Context, volumeID, serverID string) error {
	if a.silent.Swap(false) {
		return array.ErrUnreachable
	}
	return a.Array.Detach(ctx, volumeID, serverID)
}

// TestRequestsOfAnEarlierRunMayStillCome: an array may carry out what a controller has asked that has
// ended since. For a while the next one does not take what it sees for all there will be.
func TestRequestsOfAnEarlierRunMayStillCome(t *testing.T) {
	for name, test := range map[string]struct {
		// left is what the earlier run has left; comes is what the array does later.
		left  func(*world)
		comes func(*world)
		call  func(*world) error
	}{
		"growth": {
			func(w *world) {
				v := w.volume("pvc-1")
				v.Spec.Size = *resource.NewQuantity(5*gib, resource.BinarySI)
				w.must(w.api.Update(w.ctx, v))
			},
			func(w *world) {
				_, err := w.mem.GrowVolume(w.ctx, w.volume("pvc-1").Status.ID, 5*array.GiB)
				w.must(err)
			},
			func(w *world) error { _, err := w.GrowVolume(w.ctx, "pvc-1", 5*gib, 0); return err },
		},
		"create": {
			func(w *world) {
				w.must(w.api.Create(w.ctx, &v1alpha1.PoolVolume{
					ObjectMeta: metav1.ObjectMeta{Name: "pvc-2", Finalizers: []string{v1alpha1.Finalizer}},
					Spec: v1alpha1.PoolVolumeSpec{
						ClassName: "class", PoolName: "pool", Size: resource.MustParse("1Gi"), Protocol: v1alpha1.NFS, VolumeMode: v1alpha1.Filesystem,
					},
				}))
				w.must(w.api.Delete(w.ctx, w.volume("pvc-2")))
			},
			func(w *world) {
				comment := pools.NewComment("cluster", pools.Claim{}).String()
				_, err := w.mem.CreateVolume(w.ctx, array.NewVolume{Name: "pvc-2", Size: array.GiB, Comment: comment})
				w.must(err)
			},
			func(w *world) error { return w.DeleteVolume(w.ctx, "pvc-2") },
		},
		"attach": {
			func(w *world) {
				w.must(w.api.Create(w.ctx, &v1alpha1.PoolAttachment{
					ObjectMeta: metav1.ObjectMeta{Name: pools.AttachmentName("pvc-1", "node1"), Finalizers: []string{v1alpha1.Finalizer}},
					Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "pvc-1", NodeName: "node1", PoolName: "pool", Protocol: v1alpha1.NFS},
				}))
				w.must(w.api.Delete(w.ctx, w.attachment("pvc-1", "node1")))
			},
			func(w *world) {
				server, err := w.mem.EnsureServer(w.ctx, array.NewServer{Name: pools.ServerName("node1", "cluster"), Address: "10.0.0.1"})
				w.must(err)
				_, err = w.mem.Attach(w.ctx, array.NewAttachment{ServerID: server.ID, VolumeID: w.volume("pvc-1").Status.ID, NFS: true})
				w.must(err)
			},
			func(w *world) error { return w.Detach(w.ctx, "pvc-1", "node1") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.create("pvc-1", 1, false)
				w.stop()
				test.left(w)
				w.settle = 30 * time.Second
				w.start()
				time.Sleep(10 * time.Second)
				if err := test.call(w); !repeatable(err) {
					t.Errorf("at once: %v", err)
				}
				test.comes(w)
				w.must(w.repeat(func() error { return test.call(w) }))
				if on := w.on(); len(on.attachments) > 0 || len(on.servers) > 0 || len(on.volumes) != 1 || w.grown(on.volumes[0].ID) > 1 {
					t.Errorf("on the array: %+v", on)
				}
			})
		})
	}
}
