package pools

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// onArrayA changes the array of pool a as a person does there.
func (h *testPools) onArrayA(change func(a *testArray)) {
	a := h.arrays["https://a"]
	a.memArray.mu.Lock()
	defer a.memArray.mu.Unlock()
	change(a)
}

// changeVolume changes a volume on the array of pool a.
func (h *testPools) changeVolume(name string, change func(*array.Volume)) {
	h.onArrayA(func(a *testArray) {
		for id, v := range a.volumes {
			if v.Name == name {
				change(&v)
				a.volumes[id] = v
			}
		}
	})
}

// attachTo attaches a volume to node1, as Kubernetes asks for.
func (h *testPools) attachTo(name string) pools.Attachment {
	h.Helper()
	a, err := h.controller.Attach(context.Background(), pools.NewAttachment{Volume: name, Node: "node1"})
	if err != nil {
		h.Fatal(err)
	}
	return a
}

func (h *testPools) attachment(name string) v1alpha1.PoolAttachmentStatus {
	h.Helper()
	return get[v1alpha1.PoolAttachment](h, pools.AttachmentName(name, "node1")).Status
}

// withAttached runs a test with the volumes pvc-nas and pvc-raw of pool a, which are attached to node1.
func withAttached(t *testing.T, test func(h *testPools)) {
	t.Helper()
	inPools(t, func(h *testPools) {
		a := h.addPool("a", "fast")
		h.addOurs(a, "pvc-nas")
		h.addVolume(a, "pvc-raw", pools.NewComment(testCluster, pools.Claim{}).String(), 5, true)
		if err := h.kube.Create(context.Background(), coreNode("node1")); err != nil {
			h.Fatal(err)
		}
		h.add(&v1alpha1.PoolNode{ObjectMeta: metav1.ObjectMeta{Name: "node1"}, Spec: v1alpha1.PoolNodeSpec{
			Addresses: []string{"10.0.0.1"}, IQN: "iqn.2026-11.io.katbox:c:node1",
		}})
	}, func(h *testPools) {
		h.attachTo("pvc-nas")
		h.attachTo("pvc-raw")
		test(h)
	})
}

// TestArrayThatMoves: what nodes are told follows, without a call, also of what is attached already.
func TestArrayThatMoves(t *testing.T) {
	withAttached(t, func(h *testPools) {
		if a, b := h.attachment("pvc-nas"), h.attachment("pvc-raw"); a.Export != "10.0.0.9:/export/pvc-nas" || b.Portal != "10.0.0.9:3260" {
			h.Fatalf("attached at %+v and %+v", a, b)
		}
		h.arrays["https://a"].change(func(a *testArray) { a.health.Portal = "10.0.0.8:3260" })
		h.changeVolume("pvc-nas", func(v *array.Volume) { v.Export = "10.0.0.8:/export/pvc-nas" })
		h.pass(testInterval + testInterval/5)
		if s := get[v1alpha1.PoolVolume](h, "pvc-nas").Status; s.ExportPath != "10.0.0.8:/export/pvc-nas" {
			h.Errorf("the volume is at %s", s.ExportPath)
		}
		if a, b := h.attachment("pvc-nas"), h.attachment("pvc-raw"); a.Export != "10.0.0.8:/export/pvc-nas" || b.Portal != "10.0.0.8:3260" ||
			a.State != v1alpha1.AttachmentReady || b.State != v1alpha1.AttachmentLoginPending {
			h.Errorf("attached at %+v and %+v", a, b)
		}
		if again := h.attachTo("pvc-nas"); again.Export != "10.0.0.8:/export/pvc-nas" {
			h.Errorf("a node is told %s", again.Export)
		}
		h.wantEvents("a Normal PortalMoved: the array is at 10.0.0.8:3260, and was at 10.0.0.9:3260", 1)
		h.wantEvents("pvc-nas.node1 Normal Moved: the array of pool a has volume pvc-nas at 10.0.0.8:/export/pvc-nas, and had it at "+
			"10.0.0.9:/export/pvc-nas", 1)
		patched := h.kube.patched("PoolVolume") + h.kube.patched("PoolAttachment")
		h.pass(time.Hour)
		if now := h.kube.patched("PoolVolume") + h.kube.patched("PoolAttachment"); now != patched {
			h.Errorf("%d patches while nothing changes", now-patched)
		}
	})
}

// TestArrayThatMovesWhileTheAPIServerRefuses: what could not be written is tried with the next look, and not minutes later.
func TestArrayThatMovesWhileTheAPIServerRefuses(t *testing.T) {
	withAttached(t, func(h *testPools) {
		h.kube.refusing(func(key kubeKey) error {
			if key.kind == poolmessages.PoolVolumeKind || key.kind == poolmessages.PoolAttachmentKind {
				return errNotReached
			}
			return nil
		})
		h.arrays["https://a"].change(func(a *testArray) { a.health.Portal = "10.0.0.8:3260" })
		h.changeVolume("pvc-nas", func(v *array.Volume) { v.Export = "10.0.0.8:/export/pvc-nas" })
		h.pass(testInterval + testInterval/5)
		h.kube.refusing(nil)
		if a := h.attachment("pvc-nas"); a.Export != "10.0.0.9:/export/pvc-nas" {
			h.Errorf("attached at %+v", a)
		}
		h.pass(testInterval + testInterval/5)
		if a, b := h.attachment("pvc-nas"), h.attachment("pvc-raw"); a.Export != "10.0.0.8:/export/pvc-nas" || b.Portal != "10.0.0.8:3260" {
			h.Errorf("attached at %+v and %+v", a, b)
		}
	})
}

// TestVolumesThatChangeOnTheArray: renamed exports, another group, another pool, also of a volume that is retained. What a
// list leaves out has not changed.
func TestVolumesThatChangeOnTheArray(t *testing.T) {
	withAttached(t, func(h *testPools) {
		status := func(name string) v1alpha1.PoolVolumeStatus { return get[v1alpha1.PoolVolume](h, name).Status }
		h.changeVolume("pvc-nas", func(v *array.Volume) { v.PoolID, v.Export, v.Group = "pool-00000002", "10.0.0.9:/other", "cg-000000ff" })
		h.changeVolume("pvc-raw", func(v *array.Volume) { v.Group = "cg-000000fe" })
		h.pass(6 * time.Minute)
		if s := status("pvc-nas"); s.ExportPath != "10.0.0.9:/other" || s.GroupID != "cg-000000ff" || s.State != v1alpha1.VolumeReady {
			h.Errorf("the volume is %+v", s)
		}
		if s := status("pvc-raw"); s.GroupID != "cg-000000fe" {
			h.Errorf("the volume is %+v", s)
		}
		before := h.kube.patched("PoolVolume")
		h.changeVolume("pvc-nas", func(v *array.Volume) { v.Export, v.Group = "", "" })
		h.pass(time.Hour)
		if s := status("pvc-nas"); s.ExportPath != "10.0.0.9:/other" || h.kube.patched("PoolVolume") != before {
			h.Errorf("the volume is %+v", s)
		}
		kept := get[v1alpha1.PoolVolume](h, "pvc-nas")
		now, until := metav1.Now(), metav1.NewTime(time.Now().AddDate(1, 0, 0))
		kept.Status.State, kept.Status.RetainedSince, kept.Status.RetainedUntil = v1alpha1.VolumeRetained, &now, &until
		if err := h.kube.Status().Update(context.Background(), kept); err != nil {
			h.Fatal(err)
		}
		h.changeVolume("pvc-nas", func(v *array.Volume) { v.Export = "10.0.0.7:/other" })
		h.pass(6 * time.Minute)
		if s := status("pvc-nas"); s.ExportPath != "10.0.0.7:/other" || s.State != v1alpha1.VolumeRetained {
			h.Errorf("the retained volume is %+v", s)
		}
	})
}

// TestServerRecordsThatChange: a person gives the records of a node another address and another IQN, and the node
// is let in again.
func TestServerRecordsThatChange(t *testing.T) {
	withAttached(t, func(h *testPools) {
		h.onArrayA(func(a *testArray) {
			for id, s := range a.servers {
				s.Address, s.IQN = "10.6.6.6", "iqn.2026-11.io.katbox:c:other"
				a.servers[id] = s
			}
		})
		h.pass(10 * time.Minute)
		for _, name := range []string{"pvc-nas", "pvc-raw"} {
			id := get[v1alpha1.PoolVolume](h, name).Status.ID
			at := h.attachment(name)
			h.onArrayA(func(a *testArray) {
				s := a.servers[at.ServerID]
				if _, ok := a.attachments[attachedTo{id, at.ServerID}]; !ok || name == "pvc-nas" && s.Address != "10.0.0.1" ||
					name == "pvc-raw" && s.IQN != "iqn.2026-11.io.katbox:c:node1" {
					h.Errorf("%s is attached by %+v", name, s)
				}
				for at := range a.attachments {
					if at.volume == id && a.servers[at.server].Address == "10.6.6.6" {
						h.Errorf("%s is still attached by %+v", name, a.servers[at.server])
					}
				}
			})
		}
	})
}

// TestServerRecordsThatAreListedInPart: what a list leaves out has not changed, and pods use what is attached.
func TestServerRecordsThatAreListedInPart(t *testing.T) {
	withAttached(t, func(h *testPools) {
		nas, raw := h.attachment("pvc-nas"), h.attachment("pvc-raw")
		h.onArrayA(func(a *testArray) {
			for id, s := range a.servers {
				s.Address, s.IQN = "", ""
				a.servers[id] = s
			}
		})
		h.pass(10 * time.Minute)
		h.attachTo("pvc-nas") // Kubernetes asks again
		h.attachTo("pvc-raw")
		if a, b := h.attachment("pvc-nas"), h.attachment("pvc-raw"); a.ServerID != nas.ServerID || b.ServerID != raw.ServerID ||
			a.State != nas.State || b.State != raw.State {
			h.Errorf("attached as %+v and %+v, were %+v and %+v", a, b, nas, raw)
		}
		h.wantEvents("pvc-nas.node1 Warning AttachmentLost", 0)
		h.wantEvents("pvc-raw.node1 Warning AttachmentLost", 0)
	})
}

// TestLUNsThatChange: a person detaches a volume and attaches it again.
func TestLUNsThatChange(t *testing.T) {
	withAttached(t, func(h *testPools) {
		at := attachedTo{get[v1alpha1.PoolVolume](h, "pvc-raw").Status.ID, h.attachment("pvc-raw").ServerID}
		h.onArrayA(func(a *testArray) {
			on := a.attachments[at]
			on.LUN = 7
			a.attachments[at] = on
		})
		h.pass(6 * time.Minute)
		if s := h.attachment("pvc-raw"); s.LUN == nil || *s.LUN != 7 || s.State != v1alpha1.AttachmentLoginPending {
			h.Errorf("the attachment is %+v", s)
		}
	})
}

// TestCopiesOfVolumesInAnotherGroup: snapshots and copies are made of the group in which the volume is by now.
func TestCopiesOfVolumesInAnotherGroup(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	regroup := func(group string) {
		w.mem.mu.Lock()
		defer w.mem.mu.Unlock()
		for id, v := range w.mem.volumes {
			v.Group = group
			w.mem.volumes[id] = v
		}
		for id, s := range w.mem.snapshots {
			s.Group = group
			w.mem.snapshots[id] = s
		}
	}
	regroup("cg-000000ff")
	n := newVolume("pvc-2", 1, false)
	n.Source = pools.Source{Volume: "pvc-1"}
	_, err := w.CreateVolume(w.ctx, n)
	w.must(err)
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-2") }))
	s, err := w.CreateSnapshot(w.ctx, "snapshot-1", "pvc-1")
	w.must(err)
	regroup("cg-000000fe")
	n.Source = pools.Source{Snapshot: s.ID}
	_, err = w.CreateVolume(w.ctx, n)
	w.must(err)
}
