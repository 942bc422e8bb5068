package pools

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// move gives a node another address.
func (w *world) move(node, address string) {
	w.Helper()
	n := find[v1alpha1.PoolNode](w, node)
	n.Spec.Addresses[0] = address
	w.must(w.api.Update(w.ctx, n))
}

// attached reports whether volumes are attached to a node at an address, and nowhere else.
func (w *world) attachedAt(address string, ids ...string) bool {
	on := w.on()
	for _, id := range ids {
		a := w.attachment(id, "node1")
		if a == nil || a.Status.Address != address || a.Status.State != v1alpha1.AttachmentReady {
			return false
		}
		i := slices.IndexFunc(on.servers, func(s array.Server) bool { return s.ID == a.Status.ServerID })
		if i < 0 || on.servers[i].Address != address {
			return false
		}
		there, err := w.mem.Attachments(w.ctx, w.volume(id).Status.ID)
		if err != nil || len(there) != 1 || there[0].ServerID != a.Status.ServerID {
			return false
		}
	}
	return true
}

// diary notes in which order volumes are attached and detached.
type diary struct {
	*memArray
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(what, volume, server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, what+" "+volume+" "+server)
}

func (d *diary) Attach(ctx context.Context, n array.NewAttachment) (array.Attachment, error) {
	a, err := d.memArray.Attach(ctx, n)
	d.note("attach", n.VolumeID, n.ServerID)
	return a, err
}

func (d *diary) Detach(ctx context.Context, volume, server string) error {
	d.note("detach", volume, server)
	return d.memArray.Detach(ctx, volume, server)
}

// TestVolumesFollowTheirNode, over NFS, without a call: the node has the new address before the old one is
// shut out. Over iSCSI nothing changes.
func TestVolumesFollowTheirNode(t *testing.T) {
	d := &diary{}
	w := newMemWorld(t, newMemArray(), func(a *memArray) array.Array { d.memArray = a; return d })
	attach := func(id, node string, shared bool) {
		_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: id, Node: node, Shared: shared})
		w.must(err)
	}
	nfs := []string{"pvc-1", "pvc-2", "pvc-3"}
	for _, id := range nfs {
		w.create(id, 1, false)
		attach(id, "node1", false)
	}
	w.create("pvc-4", 1, true)
	attach("pvc-4", "node1", false)
	block := w.attachment("pvc-4", "node1").Status
	if !w.attachedAt("10.0.0.1", nfs...) || block.Address != "" {
		t.Fatalf("on the array: %+v", w.on())
	}
	d.mu.Lock()
	d.lines = nil
	d.mu.Unlock()

	w.move("node1", "10.0.7.7")
	w.until("the volumes are attached for the new address", func() bool { return w.attachedAt("10.0.7.7", nfs...) })
	if is := w.attachment("pvc-4", "node1").Status; is.ServerID != block.ServerID || is.State != block.State {
		t.Errorf("the volume over iSCSI was %+v, is %+v", block, is)
	}
	d.mu.Lock()
	for _, id := range nfs {
		var of []string
		for _, line := range d.lines {
			if strings.Contains(line, w.volume(id).Status.ID) {
				of = append(of, strings.Fields(line)[0])
			}
		}
		if strings.Join(of, " ") != "attach detach" {
			t.Errorf("volume %s: %q, want it attached, then detached", id, of)
		}
	}
	d.mu.Unlock()
	if on := w.on(); len(on.servers) != 2 || len(on.attachments) != 4 {
		t.Errorf("on the array: %+v", on)
	}

	// It moves back, and once more, between two looks.
	w.stop()
	w.move("node1", "10.0.8.8")
	w.start()
	w.until("the volumes follow after a start", func() bool { return w.attachedAt("10.0.8.8", nfs...) })

	// The PoolNode is deleted by a person, and made again by the node, which has another address.
	node := find[v1alpha1.PoolNode](w, "node1")
	w.must(w.api.Delete(w.ctx, node))
	node.ResourceVersion, node.UID, node.Spec.Addresses[0] = "", "", "10.0.0.1"
	w.must(w.api.Create(w.ctx, node))
	w.until("the volumes follow a new PoolNode", func() bool { return w.attachedAt("10.0.0.1", nfs...) })

	for _, id := range append(nfs, "pvc-4") {
		w.must(w.repeat(func() error { return w.Detach(w.ctx, id, "node1") }))
		w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, id) }))
	}
	w.nothingLeft()
}

// TestVolumesOfOtherNodesStay where a node moves that shares them.
func TestVolumesOfOtherNodesStay(t *testing.T) {
	w := newWorld(t)
	w.create("pvc-1", 1, false)
	for _, node := range []string{"node1", "node2"} {
		_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: "pvc-1", Node: node, Shared: true})
		w.must(err)
	}
	before := w.attachment("pvc-1", "node2").Status
	w.move("node1", "10.0.7.7")
	w.until("the volume follows", func() bool { return w.attachment("pvc-1", "node1").Status.Address == "10.0.7.7" })
	if is := w.attachment("pvc-1", "node2").Status; is != before {
		t.Errorf("on the other node it was %+v, is %+v", before, is)
	}
	if on := w.on(); len(on.servers) != 2 || len(on.attachments) != 2 {
		t.Errorf("on the array: %+v", on)
	}
}
