package pools

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

func lengthOf(list client.ObjectList) int { return meta.LenList(list) }

// scenario is one operation that is to survive a fault at each of its steps.
type scenario struct {
	name    string
	prepare func(*world)
	call    func(*world) error
	// check is for after the call has succeeded.
	check func(*world)
}

func scenarios() []scenario {
	const id, other, node = "pvc-1", "pvc-2", "node1"
	newAttachment := pools.NewAttachment{Volume: id, Node: node}
	attach := func(w *world, volume string) {
		w.Helper()
		_, err := w.Attach(w.ctx, pools.NewAttachment{Volume: volume, Node: node})
		w.must(err)
	}
	take := func(w *world) {
		w.Helper()
		_, err := w.CreateSnapshot(w.ctx, "snapshot-1", other)
		w.must(err)
	}
	copyOf := func(size int64, from pools.Source) func(*world) error {
		return func(w *world) error {
			n := newVolume(id, size, false)
			n.Source = from
			v, err := w.CreateVolume(w.ctx, n)
			if err == nil && v.Size != size*gib {
				w.Errorf("the copy has %d GiB", v.Size/gib)
			}
			return err
		}
	}
	return append(afterlifeScenarios(), []scenario{
		{"create", func(*world) {}, func(w *world) error {
			_, err := w.CreateVolume(w.ctx, newVolume(id, 3, false))
			return err
		}, func(w *world) { w.volumeIs(id, 3) }},
		{"create without room", func(w *world) { w.create(other, 999, true) }, func(w *world) error {
			_, err := w.CreateVolume(w.ctx, newVolume(id, 3, false))
			if !errors.Is(err, volume.ErrNoSpace) {
				return err
			}
			if w.volume(id) != nil && !repeatable(err) {
				w.Errorf("a final answer with a resource: %v", err)
			}
			return nil
		}, func(w *world) {
			if on := w.on(); len(on.volumes) != 1 {
				w.Errorf("on the array: %+v", on.volumes)
			}
		}},
		{"copy a volume", func(w *world) { w.create(other, 2, false) }, copyOf(5, pools.Source{Volume: other}),
			func(w *world) { w.volumeIs(id, 5); w.grewOnce(id) }},
		{"restore a snapshot", func(w *world) { w.create(other, 2, false); take(w) }, copyOf(2, pools.Source{Snapshot: "snapshot-1"}),
			func(w *world) { w.volumeIs(id, 2) }},
		{"grow", func(w *world) { w.create(id, 1, true) }, func(w *world) error {
			v, err := w.GrowVolume(w.ctx, id, 4*gib, 0)
			if err == nil && v.Size != 4*gib {
				w.Errorf("answered %d", v.Size)
			}
			return err
		}, func(w *world) { w.volumeIs(id, 4); w.grewOnce(id) }},
		{"delete", func(w *world) { w.create(id, 1, false) }, func(w *world) error { return w.DeleteVolume(w.ctx, id) },
			func(w *world) { w.nothingLeft() }},
		{"delete by hand", func(w *world) { w.create(id, 1, false) }, func(w *world) error {
			if v := w.volume(id); v != nil {
				w.must(w.api.Delete(w.ctx, v))
			}
			w.until("the PoolVolume is gone", func() bool { return w.volume(id) == nil })
			return nil
		}, func(w *world) { w.nothingLeft() }},
		{"snapshot", func(w *world) { w.create(other, 1, false) }, func(w *world) error {
			s, err := w.CreateSnapshot(w.ctx, "snapshot-1", other)
			if err == nil && (!s.Ready || s.Size != gib || s.Volume != other) {
				w.Errorf("answered %+v", s)
			}
			return err
		}, func(w *world) {
			if on := w.on(); len(on.snapshots) != 1 || w.snapshot("snapshot-1").Status.ID != on.snapshots[0].ID {
				w.Errorf("snapshots on the array: %+v", on.snapshots)
			}
		}},
		{"delete a snapshot", func(w *world) { w.create(other, 1, false); take(w) },
			func(w *world) error { return w.DeleteSnapshot(w.ctx, "snapshot-1") }, func(w *world) {
				if on := w.on(); len(on.snapshots) != 0 || w.snapshot("snapshot-1") != nil {
					w.Errorf("snapshots on the array: %+v", on.snapshots)
				}
			}},
		{"attach over nfs", func(w *world) { w.create(id, 1, false) }, func(w *world) error {
			a, err := w.Attach(w.ctx, newAttachment)
			if err == nil && a.Export == "" {
				w.Errorf("answered %+v", a)
			}
			return err
		}, func(w *world) { w.attachedOnce(id, node) }},
		{"attach over iscsi", func(w *world) { w.create(id, 1, true) }, func(w *world) error {
			a, err := w.Attach(w.ctx, newAttachment)
			if err == nil && (a.Target == "" || a.Portal == "" || a.CHAPSecret != "chap-pool" || a.Serial != w.volume(id).Status.ID) {
				w.Errorf("answered %+v", a)
			}
			return err
		}, func(w *world) { w.attachedOnce(id, node) }},
		{"follow a node", func(w *world) { w.create(id, 1, false); attach(w, id) }, func(w *world) error {
			w.move(node, "10.0.7.7")
			w.until("the volume is attached for the new address", func() bool {
				a := w.attachment(id, node)
				return a == nil || a.Status.Address == "10.0.7.7"
			})
			return nil
		}, func(w *world) {
			w.attachedOnce(id, node)
			if on := w.on(); len(on.servers) == 1 && on.servers[0].Address != "10.0.7.7" {
				w.Errorf("the array lets in %s", on.servers[0].Address)
			}
		}},
		{"detach", func(w *world) { w.create(id, 1, true); attach(w, id) }, func(w *world) error { return w.Detach(w.ctx, id, node) },
			func(w *world) {
				if on := w.on(); len(on.attachments)+len(on.servers) > 0 || w.attachment(id, node) != nil {
					w.Errorf("left on the array: %+v", on)
				}
			}},
		{"detach one of two", func(w *world) {
			w.create(id, 1, true)
			w.create(other, 1, false)
			attach(w, id)
			attach(w, other)
		}, func(w *world) error { return w.Detach(w.ctx, id, "") }, func(w *world) { w.attachedOnce(other, node) }},
	}...)
}

// volumeIs checks a volume that is done: once on the array, as its resource says.
func (w *world) volumeIs(name string, size int64) {
	w.Helper()
	have, v := w.on().named(w, name), w.volume(name)
	if v == nil || v.Status.State != v1alpha1.VolumeReady || v.Status.ID != have.ID || v.Status.Capacity.Value() != size*gib ||
		have.Size.Bytes() != size*gib || pools.ParseComment(have.Comment) != (pools.Comment{Cluster: "cluster", Claim: "ns/" + name}) {
		w.Errorf("the array has %+v, the resource says %+v", have, v.Status)
	}
}

// grewOnce checks that a volume has grown in one step.
func (w *world) grewOnce(name string) {
	w.Helper()
	if n := w.grown(w.on().named(w, name).ID); n != 1 {
		w.Errorf("volume %s has grown %d times", name, n)
	}
}

// attachedOnce checks that there is one attachment, and its server record.
func (w *world) attachedOnce(name, node string) {
	w.Helper()
	on, a := w.on(), w.attachment(name, node)
	if len(on.attachments) != 1 || len(on.servers) != 1 || a == nil || a.Status.ServerID != on.servers[0].ID ||
		on.attachments[0].ServerID != on.servers[0].ID || on.attachments[0].VolumeID != on.named(w, name).ID {
		w.Errorf("on the array: %+v; the resource says %+v", on, a.Status)
	}
}

// removeAll deletes everything by calls, and checks that nothing is left.
func (w *world) removeAll() {
	w.Helper()
	for _, id := range []string{"pvc-1", "pvc-2"} {
		w.must(w.repeat(func() error { return w.Detach(w.ctx, id, "") }))
	}
	w.must(w.repeat(func() error { return w.DeleteSnapshot(w.ctx, "snapshot-1") }))
	for _, id := range []string{"pvc-1", "pvc-2"} {
		w.must(client.IgnoreNotFound(w.api.Delete(w.ctx, rules.ClaimObject("ns", id, ""))))
	}
	for _, id := range []string{"pvc-1", "pvc-2"} {
		w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, id) }))
	}
	w.eraseRetained()
	w.nothingLeft()
}

// afterwards is what follows a fault.
type afterwards string

const (
	// repeated: the call is repeated until it succeeds. It has the same result as without a fault, once.
	repeated afterwards = "repeated"
	// undone: the caller wants the opposite next.
	undone afterwards = "undone"
	// alone: the caller never comes back.
	alone afterwards = "alone"
)

// TestFaultAtEachStep lets every call of the array, and every write to the Kubernetes API, go wrong, of
// every operation. Whatever follows, nothing is there twice, and nothing is left when everything has
// been deleted.
func TestFaultAtEachStep(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			eachFault(t, s, func(t *testing.T, f func(*world)) { f(newWorld(t)) }, everyFault)
		})
	}
}

// trial is one kind of fault, and what follows it.
type trial struct {
	kind faultKind
	then afterwards
}

// everyFault are all trials at a step. A crash before the first step is the only one that is not the
// crash after another.
func everyFault(at int) []trial {
	trials := []trial{
		{failsBefore, repeated}, {answerLost, repeated}, {answerLost, undone}, {answerLost, alone},
		{crashAfter, repeated}, {crashAfter, undone}, {crashAfter, alone},
	}
	if at == 0 {
		trials = append(trials, trial{crashBefore, repeated}, trial{crashBefore, alone})
	}
	return trials
}

// eachFault runs a scenario with faults at each step, in a world of its own for each.
func eachFault(t *testing.T, s scenario, in func(*testing.T, func(*world)), which func(at int) []trial) {
	var names []string
	in(t, func(w *world) { names = runWithFault(w, s, -1, noFault, repeated) })
	if len(names) < 3 {
		t.Fatalf("steps: %q", names)
	}
	for at, name := range names {
		for _, trial := range which(at) {
			t.Run(fmt.Sprintf("%d %s: %s, %s", at, name, trial.kind, trial.then), func(t *testing.T) {
				in(t, func(w *world) { runWithFault(w, s, at, trial.kind, trial.then) })
			})
		}
	}
}

func runWithFault(w *world, s scenario, at int, kind faultKind, then afterwards) []string {
	s.prepare(w)
	w.steps.arm(at, kind)
	if then == repeated {
		w.must(w.repeat(func() error { return s.call(w) }))
		names := w.steps.disarm()
		s.check(w)
		w.removeAll()
		return names
	}
	_ = s.call(w)
	if then == alone {
		w.until("nothing is left to do", w.settled)
	}
	w.removeAll()
	return nil
}

// settled reports whether no resource has anything left to do, and the array has exactly what the
// resources say.
func (w *world) settled() bool {
	volumes, snapshots, attachments := &v1alpha1.PoolVolumeList{}, &v1alpha1.PoolSnapshotList{}, &v1alpha1.PoolAttachmentList{}
	for _, list := range []client.ObjectList{volumes, snapshots, attachments} {
		w.must(w.api.List(w.ctx, list))
	}
	on, nodes := w.on(), map[string]bool{}
	for i := range volumes.Items {
		if rules.UnfinishedVolume(&volumes.Items[i]) {
			return false
		}
	}
	for i := range snapshots.Items {
		if rules.UnfinishedSnapshot(&snapshots.Items[i]) {
			return false
		}
	}
	for i := range attachments.Items {
		if rules.UnfinishedAttachment(&attachments.Items[i]) {
			return false
		}
		nodes[attachments.Items[i].Spec.NodeName] = true
	}
	return len(on.volumes) == len(volumes.Items) && len(on.snapshots) == len(snapshots.Items) &&
		len(on.attachments) == len(attachments.Items) && len(on.servers) == len(nodes)
}
