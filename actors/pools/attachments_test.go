package pools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

func TestAttachmentRules(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	attach := func(a pools.NewAttachment) (pools.Attachment, error) { return w.Attach(w.ctx, a) }
	_, err := attach(pools.NewAttachment{Volume: "pvc-0", Node: "node1"})
	w.wants(err, volume.ErrNotFound, "pvc-0")
	_, err = attach(pools.NewAttachment{Volume: "pvc-1", Node: "node0"})
	w.wants(err, volume.ErrNotFound, "node0")
	if w.attachment("pvc-1", "node0") != nil {
		t.Error("the attachment to an unknown node has a resource")
	}
	_, err = attach(pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	_, err = attach(pools.NewAttachment{Volume: "pvc-1", Node: "node1", ReadOnly: true})
	w.wants(err, volume.ErrConflict, "read-only")
	_, err = attach(pools.NewAttachment{Volume: "pvc-1", Node: "node2", Shared: true})
	w.wants(err, pools.ErrInUse, "node1")
	w.must(w.Detach(w.ctx, "pvc-1", "node2"))
	w.must(w.Detach(w.ctx, "pvc-0", "node1"))
	w.attachedOnce("pvc-1", "node1")
	w.must(w.Detach(w.ctx, "pvc-1", "node1"))
	for _, node := range []string{"node1", "node2"} {
		_, err = attach(pools.NewAttachment{Volume: "pvc-1", Node: node, Shared: true})
		w.must(err)
	}
	if on := w.on(); len(on.attachments) != 2 || len(on.servers) != 2 {
		t.Errorf("on the array: %+v", on)
	}
	w.must(w.Detach(w.ctx, "pvc-1", ""))
	if on := w.on(); len(on.attachments)+len(on.servers) != 0 {
		t.Errorf("left on the array: %+v", on)
	}
}

// TestLostAttachmentIsMadeAgain: a person has detached the volume on the array.
func TestLostAttachmentIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	ask := pools.NewAttachment{Volume: "pvc-1", Node: "node1"}
	first, err := w.Attach(w.ctx, ask)
	w.must(err)
	on := w.on()
	w.must(w.mem.Detach(w.ctx, on.volumes[0].ID, on.servers[0].ID))
	w.must(w.mem.DeleteServer(w.ctx, on.servers[0].ID))
	second, err := w.Attach(w.ctx, ask)
	w.must(err)
	w.attachedOnce("pvc-1", "node1")
	if second != first {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

// TestDetachBelievesTheArrayAlone: the node may be out of sight and still write.
func TestDetachBelievesTheArrayAlone(t *testing.T) {
	w := newMemWorld(t, newMemArray(), func(a *memArray) array.Array { return deaf{a} })
	w.create("pvc-1", 1, true)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	w.wants(w.Detach(w.ctx, "pvc-1", "node1"), volume.ErrUncertain, "still attached")
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node2"})
	w.wants(err, pools.ErrInUse, "node1")
}

// TestNodeThatHasMovedGetsANewServerRecord, and the old one goes with what was attached there.
func TestNodeThatHasMovedGetsANewServerRecord(t *testing.T) {
	w := newWorld(t)
	attach := func(id string) {
		// Volumes follow their node, and are busy meanwhile.
		w.must(w.repeat(func() error {
			_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: id, Node: "node1"})
			return err
		}))
	}
	w.create("pvc-1", 1, false)
	w.create("pvc-2", 1, false)
	w.create("pvc-3", 1, true)
	attach("pvc-1")
	attach("pvc-3")
	before := w.on().servers
	node := find[v1alpha1.PoolNode](w, "node1")
	node.Spec.Addresses[0] = "10.0.7.7"
	w.must(w.api.Update(w.ctx, node))
	attach("pvc-2")
	on := w.on()
	if len(on.servers) != 2 || w.attachment("pvc-2", "node1").Status.ServerID == before[0].ID {
		t.Fatalf("on the array: %+v", on)
	}
	attach("pvc-1") // Kubernetes asks again
	attach("pvc-3") // its IQN is what it was
	if a, b := w.attachment("pvc-1", "node1"), w.attachment("pvc-2", "node1"); a.Status.ServerID != b.Status.ServerID {
		t.Errorf("%s and %s", a.Status.ServerID, b.Status.ServerID)
	}
	if len(w.on().attachments) != 3 || w.attachment("pvc-3", "node1").Status.ServerID != before[0].ID {
		t.Errorf("on the array: %+v", w.on())
	}
	for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		w.must(w.Detach(w.ctx, id, "node1"))
		w.must(w.DeleteVolume(w.ctx, id))
	}
	w.nothingLeft()
}

// TestManyVolumesShareANodesServerRecord, whatever comes and goes at the same time.
func TestManyVolumesShareANodesServerRecord(t *testing.T) {
	const volumes, rounds = 12, 5
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range volumes {
		id := fmt.Sprintf("pvc-%d", i)
		w.create(id, 1, i%2 == 0)
		all.Go(func() {
			for range rounds {
				if err := w.repeat(func() error {
					_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: id, Node: "node1"})
					return err
				}); err != nil {
					t.Error(err)
				}
				on, err := w.mem.Attachments(w.ctx, w.volume(id).Status.ID)
				if err != nil || len(on) != 1 {
					t.Errorf("volume %s: %+v, %v", id, on, err)
				}
				if err := w.repeat(func() error { return w.Detach(w.ctx, id, "node1") }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if on := w.on(); len(on.servers)+len(on.attachments) > 0 {
		t.Errorf("left on the array: %+v", on)
	}
}

// TestDoubledCalls: Kubernetes sends the same call twice, and the opposite one between.
func TestDoubledCalls(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-2", 1, false)
	var all sync.WaitGroup
	for range 4 {
		for _, call := range []func() error{
			func() error { _, err := w.CreateVolume(w.ctx, newVolume("pvc-1", 2, false)); return err },
			func() error { _, err := w.GrowVolume(w.ctx, "pvc-2", 5*gib, 0); return err },
			func() error { _, err := w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-2"); return err },
			func() error {
				_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-2", Node: "node1"})
				return err
			},
		} {
			all.Go(func() {
				if err := w.repeat(call); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	w.volumeIs("pvc-1", 2)
	w.volumeIs("pvc-2", 5)
	w.grewOnce("pvc-2")
	w.attachedOnce("pvc-2", "node1")
	for range 4 {
		all.Go(func() {
			if err := w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() { _, _ = w.CreateVolume(w.ctx, newVolume("pvc-1", 2, false)) })
	}
	all.Wait()
	w.removeAll()
}

// TestPoolNodeEndsWithItsNode, once nothing is attached there.
func TestPoolNodeEndsWithItsNode(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	ours := func(name string) bool { return find[v1alpha1.PoolNode](w, name) != nil }
	w.must(w.api.Delete(w.ctx, coreNode("node2")))
	w.until("the PoolNode of a node with nothing attached is gone", func() bool { return !ours("node2") })
	w.must(w.api.Delete(w.ctx, coreNode("node1")))
	w.restart()
	if !ours("node1") {
		t.Error("the PoolNode of a node that something is attached to is gone")
	}
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node1") }))
	w.until("the PoolNode is gone after the last volume", func() bool { return !ours("node1") })

	// A node that a watch has not reported is in the cluster all the same.
	w.api.watch(nil)
	w.must(w.api.Create(w.ctx, coreNode("node3")))
	node := &v1alpha1.PoolNode{ObjectMeta: metav1.ObjectMeta{Name: "node3"}, Spec: v1alpha1.PoolNodeSpec{Addresses: []string{"10.0.0.3"}}}
	w.must(w.api.Create(w.ctx, node))
	w.Seen(poolmessages.PoolNodeKind, clone(node))
	w.create("pvc-2", 1, false)
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-2", Node: "node3"})
	w.must(err)
	if !ours("node3") {
		t.Error("a PoolNode is gone whose node is there")
	}
}

// TestLeftoverInAnotherModeIsAttachedAnew: no resource tells of it, so it serves no pod.
func TestLeftoverInAnotherModeIsAttachedAnew(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	id := w.volume("pvc-1").Status.ID
	server, err := w.mem.EnsureServer(w.ctx, array.NewServer{
		Name: pools.ServerName("node1", "cluster"), IQN: "iqn.2026-11.io.katbox:c:node1", Address: "10.0.0.1",
	})
	w.must(err)
	_, err = w.mem.Attach(w.ctx, array.NewAttachment{ServerID: server.ID, VolumeID: id, NFS: true})
	w.must(err)
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1", ReadOnly: true})
	w.must(err)
	if on := w.on(); len(on.attachments) != 1 || !on.attachments[0].ReadOnly {
		t.Errorf("on the array: %+v", on)
	}
}

// mute refuses every comment.
type mute struct{ *memArray }

func (mute) CommentVolume(context.Context, string, string) error { return errors.New("N/A (17): no") }

func (m mute) CreateVolume(ctx context.Context, n array.NewVolume) (array.Volume, error) {
	n.Comment = ""
	return m.memArray.CreateVolume(ctx, n)
}

// TestVolumeWithoutACommentIsBetterThanNone: an array may refuse comments.
func TestVolumeWithoutACommentIsBetterThanNone(t *testing.T) {
	w := newMemWorld(t, newMemArray(), func(a *memArray) array.Array { return mute{a} })
	w.create("pvc-1", 1, false)
	w.must(w.DeleteVolume(w.ctx, "pvc-1"))
	w.nothingLeft()
}

// TestUnsharedVolumeStaysOnItsServer, also where no resource tells that the array has attached it.
func TestUnsharedVolumeStaysOnItsServer(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	id := w.volume("pvc-1").Status.ID
	attachTo := func(server string) string {
		s, err := w.mem.EnsureServer(w.ctx, array.NewServer{Name: server, IQN: "iqn.2026-11.io.katbox:c:" + server})
		w.must(err)
		_, err = w.mem.Attach(w.ctx, array.NewAttachment{ServerID: s.ID, VolumeID: id})
		w.must(err)
		return s.ID
	}
	attach := func(node string, shared bool) error {
		_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: node, Shared: shared})
		return err
	}
	// A resource was lost.
	server := attachTo(pools.ServerName("node2", "cluster"))
	w.wants(attach("node1", false), pools.ErrInUse, server)
	if w.attachment("pvc-1", "node1") != nil {
		t.Error("an attachment that was refused has a resource")
	}
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node2") }))
	w.must(attach("node1", false))
	w.attachedOnce("pvc-1", "node1")
	// The array loses the attachment, and a person makes another one.
	w.must(w.mem.Detach(w.ctx, id, w.attachment("pvc-1", "node1").Status.ServerID))
	server = attachTo("a person's")
	w.wants(attach("node1", false), pools.ErrInUse, server)
	if on := w.on(); len(on.attachments) != 1 {
		t.Errorf("on the array: %+v", on)
	}
	w.must(w.mem.Detach(w.ctx, id, server))
	w.must(w.mem.DeleteServer(w.ctx, server))
	w.must(w.repeat(func() error { return attach("node1", false) }))
	w.attachedOnce("pvc-1", "node1")
	w.must(w.Detach(w.ctx, "pvc-1", "node1"))
	// Where it is shared, others may have it.
	attachTo("a person's")
	w.must(attach("node1", true))
}

// TestAttachmentMadeByHandIsAdmittedToo: no call was let through for it.
func TestAttachmentMadeByHandIsAdmittedToo(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	byHand := func(node string) *v1alpha1.PoolAttachment {
		a := &v1alpha1.PoolAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: pools.AttachmentName("pvc-1", node), Finalizers: []string{v1alpha1.Finalizer}},
			Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "pvc-1", NodeName: node, PoolName: "pool", Protocol: v1alpha1.ISCSI},
		}
		w.must(w.api.Create(w.ctx, a))
		return a
	}
	_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	failed := func() bool { return w.attachment("pvc-1", "node2").Status.State == v1alpha1.AttachmentFailed }
	byHand("node2")
	w.until("the second one is Failed", failed)
	w.attachedOnce("pvc-1", "node1")
	if says := w.attachment("pvc-1", "node2").Status.Message; !strings.Contains(says, "node1") {
		t.Errorf("the message is %q", says)
	}
	// The task that has written Failed may not have ended yet.
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node2") }))
	w.must(w.Detach(w.ctx, "pvc-1", "node1"))
	// The controller was not there when they were made; the first one was to be attached already.
	w.stop()
	byHand("node1")
	second := byHand("node2")
	second.SetCreationTimestamp(metav1.NewTime(second.CreationTimestamp.Add(time.Minute)))
	w.must(w.api.Update(w.ctx, second))
	w.start()
	w.until("the older one is attached", func() bool {
		return w.attachment("pvc-1", "node1").Status.State == v1alpha1.AttachmentLoginPending
	})
	w.until("the other one is Failed", failed)
	w.attachedOnce("pvc-1", "node1")
}

// TestServerRecordOfOthersIsLeftAlone: nodes may write into the status which record is theirs.
func TestServerRecordOfOthersIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	other, err := w.mem.EnsureServer(w.ctx, array.NewServer{Name: pools.ServerName("node1", "another cluster"), Address: "10.9.9.9"})
	w.must(err)
	_, err = w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: "node1"})
	w.must(err)
	a := w.attachment("pvc-1", "node1")
	a.Status.ServerID = other.ID
	w.must(w.api.Status().Update(w.ctx, a))
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "node1") }))
	if on := w.on(); len(on.attachments) > 0 || len(on.servers) != 1 || on.servers[0].ID != other.ID {
		t.Errorf("on the array: %+v", on)
	}
}
