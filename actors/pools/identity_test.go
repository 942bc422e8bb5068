package pools

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// finds writes what a node has found into its attachment, and returns the attachment once the controller has decided.
func (w *world) finds(id, node, wwid string, bytes int64) v1alpha1.PoolAttachmentStatus {
	w.Helper()
	w.says(id, node, wwid, bytes)
	return w.decided(id, node)
}

func (w *world) says(id, node, wwid string, bytes int64) {
	w.Helper()
	w.must(w.repeat(func() error {
		a := w.attachment(id, node)
		a.Status.WWID, a.Status.DiskBytes, a.Status.RefusedWWID = wwid, bytes, ""
		return conflictIsBusy(w.api.Status().Update(w.ctx, a))
	}))
}

func (w *world) decided(id, node string) (s v1alpha1.PoolAttachmentStatus) {
	w.Helper()
	w.until("the disk of "+id+" on "+node+" is judged", func() bool {
		a := w.attachment(id, node)
		s = a.Status
		return !rules.FindsDisk(a)
	})
	return s
}

func (w *world) attach(id, node string) pools.Attachment {
	w.Helper()
	var a pools.Attachment
	w.must(w.repeat(func() (err error) {
		a, err = w.Attach(w.ctx, pools.NewAttachment{Volume: id, Node: node, Shared: true})
		return err
	}))
	return a
}

// TestDiskOfAVolume is the one that the first node has found, from then on and on all nodes.
func TestDiskOfAVolume(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 2, true)
	if a := w.attach("pvc-1", "node1"); a.WWID != "" {
		t.Errorf("the disk of a volume that no node has seen: %+v", a)
	}
	if s := w.finds("pvc-1", "node1", "naa.1", 2*gib); s.AcceptedWWID != "naa.1" || s.RefusedWWID != "" {
		t.Fatalf("%+v", s)
	}
	if v := w.volume("pvc-1"); v.Status.WWID != "naa.1" {
		t.Errorf("%+v", v.Status)
	}
	if a := w.attach("pvc-1", "node2"); a.WWID != "naa.1" {
		t.Errorf("the next node does not learn it: %+v", a)
	}
	// An older daemon, or one that has learnt nothing, asks all the same.
	s := w.finds("pvc-1", "node2", "naa.2", 2*gib)
	if s.AcceptedWWID != "" || s.RefusedWWID != "naa.2" || !strings.Contains(s.Message, "naa.1") || !strings.Contains(s.Message, "node2") {
		t.Errorf("%+v", s)
	}
	if s := w.finds("pvc-1", "node2", "naa.1", 2*gib); s.AcceptedWWID != "naa.1" || s.RefusedWWID != "" || s.Message != "" {
		t.Errorf("%+v", s)
	}
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "") }))
	if a := w.attach("pvc-1", "node1"); a.WWID != "naa.1" {
		t.Errorf("attached again: %+v", a)
	}
}

// TestTwoNodesFindDifferentDisks at the same time: one of them has the wrong one.
func TestTwoNodesFindDifferentDisks(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, true)
	nodes := []string{"node1", "node2"}
	for _, node := range nodes {
		w.attach("pvc-1", node)
	}
	for _, node := range nodes {
		w.says("pvc-1", node, "naa."+node, gib)
	}
	accepted := ""
	for _, node := range nodes {
		switch s := w.decided("pvc-1", node); {
		case s.AcceptedWWID != "" && accepted == "":
			accepted = s.AcceptedWWID
		case s.AcceptedWWID != "":
			t.Errorf("%s was accepted, and %s too", accepted, s.AcceptedWWID)
		case s.RefusedWWID != "naa."+node:
			t.Errorf("%s: %+v", node, s)
		}
	}
	if v := w.volume("pvc-1"); accepted == "" || v.Status.WWID != accepted {
		t.Errorf("%s was accepted, the volume has %q", accepted, v.Status.WWID)
	}
	// A person has found out which one is right.
	v := w.volume("pvc-1")
	v.Status.WWID = ""
	w.must(w.api.Status().Update(w.ctx, v))
	other := map[string]string{"naa.node1": "node2", "naa.node2": "node1"}[accepted]
	w.until("the other one is accepted", func() bool { return w.finds("pvc-1", other, "naa."+other, gib).AcceptedWWID == "naa."+other })
}

// TestDiskThatIsNotTheVolumes: the array has another one at the LUN, or it is another volume's.
func TestDiskThatIsNotTheVolumes(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"pvc-1", "pvc-2"} {
		w.create(id, 1, true)
		w.attach(id, "node1")
	}
	refused := func(s v1alpha1.PoolAttachmentStatus, because string) {
		w.Helper()
		if s.AcceptedWWID != "" || s.RefusedWWID == "" || !strings.Contains(s.Message, because) {
			t.Errorf("%s: %+v", because, s)
		}
	}
	refused(w.finds("pvc-1", "node1", "naa.1", 2*gib), "has 2 GiB")
	refused(w.finds("pvc-1", "node1", "naa.2", 0), "has 0 bytes")
	if s := w.finds("pvc-1", "node1", "naa.1", gib); s.AcceptedWWID != "naa.1" {
		t.Errorf("%+v", s)
	}
	w.restart()
	refused(w.finds("pvc-2", "node1", "naa.1", gib), "is that of volume pvc-1")
	on := w.on()
	for _, v := range on.volumes {
		for _, server := range v.Servers {
			w.must(w.mem.Detach(w.ctx, v.ID, server))
		}
	}
	refused(w.finds("pvc-2", "node1", "naa.2", gib), "does not have volume pvc-2 at LUN")
	for _, id := range []string{"pvc-1", "pvc-2"} {
		if v := w.volume(id); v.Status.WWID != map[string]string{"pvc-1": "naa.1"}[id] {
			t.Errorf("%s: %+v", id, v.Status)
		}
	}
}

// TestNameOfADiskIsFreeAgain once its volume is gone: arrays may use it for another one.
func TestNameOfADiskIsFreeAgain(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"pvc-1", "pvc-2"} {
		w.create(id, 1, true)
		w.attach(id, "node1")
	}
	w.finds("pvc-1", "node1", "naa.1", gib)
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "") }))
	w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
	w.until("the volume is gone", func() bool { return w.volume("pvc-1") == nil })
	if s := w.finds("pvc-2", "node1", "naa.1", gib); s.AcceptedWWID != "naa.1" {
		t.Errorf("%+v", s)
	}
}

// TestDiskOverNFS: a node that says it has found one has the controller attach the volume again and again no more.
func TestDiskOverNFS(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	w.attach("pvc-1", "node1")
	w.says("pvc-1", "node1", "naa.1", gib)
	if a := w.attachment("pvc-1", "node1"); a.Spec.Protocol != v1alpha1.NFS || a.Status.WWID != "naa.1" || rules.UnfinishedAttachment(a) {
		t.Errorf("the controller has something left to do for %+v", a)
	}
	w.must(w.repeat(func() error { return w.Detach(w.ctx, "pvc-1", "") }))
}

// conflictIsBusy makes an error of a write that met another one be repeated.
func conflictIsBusy(err error) error {
	if apierrors.IsConflict(err) {
		return volume.ErrBusy
	}
	return err
}
