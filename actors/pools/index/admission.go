package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Admission decides on requests: what concerns several resources is decided here, in the supervisor's turn, by what there is
// and what is under way.
type Admission struct {
	*Index
	// admitted are the operations that were let through and have not ended.
	admitted admitted
	// objects are the Pools, as they were seen last.
	objects map[string]*v1alpha1.Pool
}

// NewAdmission returns what decides by an index, and by the Pools, which the caller keeps up to date.
func NewAdmission(x *Index, objects map[string]*v1alpha1.Pool) *Admission {
	return &Admission{Index: x, admitted: admitted{}, objects: objects}
}

// End forgets what was let through for an actor.
func (a *Admission) End(id volume.ID) { delete(a.admitted, id) }

// admitted are operations, by the actors that carry them out.
type admitted map[volume.ID][]operation

// operation is one that was let through.
type operation struct {
	does doing
	// volume is the one that is changed; node is where it gets attached.
	volume, node string
	// shared: it may be attached elsewhere too.
	shared bool
	// source is what a new volume's data comes from.
	source pools.Source
}

type doing int

const (
	creating doing = iota
	removing
	growing
	attaching
	detaching
	snapshotting
	removingSnapshot
	restoring
)

// add notes an operation until its actor has ended.
func (a admitted) add(id volume.ID, op operation) {
	if !slices.Contains(a[id], op) {
		a[id] = append(a[id], op)
	}
}

// attaching returns the attachments of a volume that are being made.
func (a admitted) attaching(name string) (all []operation) {
	for _, ops := range a {
		for _, op := range ops {
			if op.does == attaching && op.volume == name {
				all = append(all, op)
			}
		}
	}
	return all
}

// any reports whether an operation fits.
func (a admitted) any(fits func(operation) bool) bool {
	for _, ops := range a {
		if slices.ContainsFunc(ops, fits) {
			return true
		}
	}
	return false
}

// Admit lets a request through, or says why not.
func (a *Admission) Admit(m messages.Request) error {
	op, err := a.judge(m)
	if err != nil {
		return err
	}
	a.admitted.add(m.Route().ID, op)
	return nil
}

// IsElsewhere answers a request for what is in a pool of another kind, which the driver that asks does not have. So there is
// nothing to delete. It reports whether it has answered. What is not known may be of this kind.
func (a *Admission) IsElsewhere(m messages.Request) bool {
	switch m := m.(type) {
	case *poolmessages.CreateVolume:
		switch from := m.New.Source; {
		case a.isOtherVolume(from.Volume, m.New.Kind):
			m.Fail(noVolume(from.Volume))
		case a.isOtherSnapshot(from.Snapshot, m.New.Kind):
			m.Fail(fmt.Errorf("%w: there is no snapshot %s of this driver", volume.ErrNotFound, from.Snapshot))
		default:
			return false
		}
		return true
	case *poolmessages.RemoveVolume:
		if a.isOtherVolume(m.Name, m.Kind) {
			m.Send(struct{}{}, nil)
			return true
		}
	case *poolmessages.RemoveSnapshot:
		if a.isOtherSnapshot(m.Name, m.Kind) {
			m.Send(struct{}{}, nil)
			return true
		}
	case *poolmessages.GrowVolume:
		return a.noVolume(m, m.Name, m.Kind)
	case *poolmessages.AttachVolume:
		return a.noVolume(m, m.New.Volume, m.Kind)
	case *poolmessages.TakeSnapshot:
		return a.noVolume(m, m.Volume, m.Kind)
	}
	return false
}

// noVolume refuses a question for a volume of another kind. It reports whether it did.
func (a *Admission) noVolume(m messages.Failer, name string, kind pools.Kind) bool {
	other := a.isOtherVolume(name, kind)
	if other {
		m.Fail(noVolume(name))
	}
	return other
}

func noVolume(name string) error {
	return fmt.Errorf("%w: there is no volume %s of this driver", volume.ErrNotFound, name)
}

// isOtherVolume reports whether a volume is known to be in a pool of another kind than the one that is asked for.
func (x *Index) isOtherVolume(name string, kind pools.Kind) bool {
	v := x.volumes[name]
	return v != nil && kind != "" && v.kind() != kind
}

// isOtherSnapshot is isOtherVolume for a snapshot, which is in the pool of its volume.
func (x *Index) isOtherSnapshot(name string, kind pools.Kind) bool {
	s := x.snapshots[name]
	return s != nil && kind != "" && x.kindOfSnapshot(s) != kind
}

// judge decides on a request.
func (a *Admission) judge(m messages.Request) (operation, error) {
	switch m := m.(type) {
	case *poolmessages.CreateVolume:
		return operation{does: creating, volume: pools.VolumeName(m.New.Name), source: m.New.Source}, a.mayCreate(m)
	case *poolmessages.RemoveVolume:
		op := operation{does: removing, volume: m.Name}
		if a.volumes[m.Name] == nil {
			return op, cmp.Or(a.mayBeUnknown("volume "+m.Name), a.MayRemove(m.Name))
		}
		return op, a.MayRemove(m.Name)
	case *poolmessages.EndRetained:
		return operation{does: removing, volume: m.Name}, a.MayRemove(m.Name)
	case *poolmessages.RestoreVolume:
		return operation{does: restoring, volume: m.Name}, a.mayRestore(m.Name)
	case *poolmessages.GrowVolume:
		return operation{does: growing, volume: m.Name}, a.mayChange(m.Name)
	case *poolmessages.AttachVolume:
		return operation{does: attaching, volume: m.New.Volume, node: m.New.Node, shared: m.New.Shared}, a.mayAttach(m.New)
	case *poolmessages.DetachVolume:
		op := operation{does: detaching, volume: m.Volume, node: m.Node}
		if a.volumes[m.Volume] == nil && a.attachments[pools.AttachmentName(m.Volume, m.Node)] == nil {
			return op, a.mayBeUnknown("volume " + m.Volume)
		}
		return op, nil
	case *poolmessages.TakeSnapshot:
		return operation{does: snapshotting, volume: m.Volume}, a.maySnapshot(m)
	case *poolmessages.RemoveSnapshot:
		op := operation{does: removingSnapshot, source: pools.Source{Snapshot: m.Name}}
		if a.snapshots[m.Name] == nil {
			return op, cmp.Or(a.mayBeUnknown("snapshot "+m.Name), a.MayRemoveSnapshot(m.Name))
		}
		return op, a.MayRemoveSnapshot(m.Name)
	}
	return operation{}, fmt.Errorf("the supervisor is asked %T, which it does not know", m)
}

// mayCreate refuses a copy of what is being deleted, unless the volume was made before: the answer may
// be lost, and the source gone since.
func (a *Admission) mayCreate(m *poolmessages.CreateVolume) error {
	if a.volumes[pools.VolumeName(m.New.Name)] != nil {
		return nil
	}
	return a.mayCopy(m.New.Source)
}

// mayCopy refuses a copy of what is being deleted.
func (a *Admission) mayCopy(from pools.Source) error {
	if from.Volume != "" {
		return a.mayChange(from.Volume)
	}
	if from.Snapshot == "" {
		return nil
	}
	s := a.snapshots[from.Snapshot]
	switch {
	case s == nil:
		return fmt.Errorf("%w: there is no PoolSnapshot %s to make a volume from", volume.ErrNotFound, from.Snapshot)
	case s.flags.Has(poolmessages.FlagDeleting) || a.admitted.any(func(op operation) bool {
		return op.does == removingSnapshot && op.source.Snapshot == from.Snapshot
	}):
		return fmt.Errorf("%w: snapshot %s is being deleted", volume.ErrBusy, from.Snapshot)
	}
	return nil
}

// mayChange refuses to change a volume that does not exist, or not for long.
func (a *Admission) mayChange(name string) error {
	v := a.volumes[name]
	switch {
	case v == nil:
		return fmt.Errorf("%w: there is no PoolVolume %s", volume.ErrNotFound, name)
	case v.Flags.Has(poolmessages.FlagDeleting) || a.admitted.any(func(op operation) bool { return op.does == removing && op.volume == name }):
		return fmt.Errorf("%w: volume %s is being deleted", volume.ErrBusy, name)
	case v.Flags.Has(poolmessages.FlagRetained):
		return fmt.Errorf("%w: volume %s is retained, because its claim was deleted; a new claim gets it with the annotation %s",
			volume.ErrNotFound, name, v1alpha1.RestoreAnnotation)
	}
	return nil
}

// mayRestore refuses to give a volume to a claim that goes just now.
func (a *Admission) mayRestore(name string) error {
	v := a.volumes[name]
	switch {
	case v == nil:
		return fmt.Errorf("%w: the retained volume %s is gone", volume.ErrNotFound, name)
	case v.Flags.Has(poolmessages.FlagDeleting) || a.admitted.any(func(op operation) bool { return op.does == removing && op.volume == name }):
		return fmt.Errorf("%w: volume %s is being deleted", volume.ErrBusy, name)
	}
	return nil
}

// MayRemove refuses to delete a volume that is in use.
func (a *Admission) MayRemove(name string) error {
	if attached := a.attachmentsOf[name]; len(attached) > 0 {
		return fmt.Errorf("%w: volume %s is attached to node %s", pools.ErrInUse, name, a.attachments[attached[0]].Node)
	}
	if under := a.admitted.attaching(name); len(under) > 0 {
		return fmt.Errorf("%w: volume %s is being attached to node %s", pools.ErrInUse, name, under[0].node)
	}
	if snapshots := a.snapshotsOf[name]; len(snapshots) > 0 {
		return fmt.Errorf("%w: volume %s has %d snapshots, such as %s; delete them first", pools.ErrInUse, name, len(snapshots), snapshots[0])
	}
	if a.admitted.any(func(op operation) bool {
		return op.does == snapshotting && op.volume == name || op.does == creating && op.source.Volume == name
	}) {
		return fmt.Errorf("%w: volume %s is being copied", volume.ErrBusy, name)
	}
	return nil
}

// mayAttach lets a volume that is not shared be on one node at a time. What is being attached, or
// detached, counts.
func (a *Admission) mayAttach(n pools.NewAttachment) error {
	if err := a.mayChange(n.Volume); err != nil {
		return err
	}
	elsewhere := func(node string, shared bool) error {
		if node == n.Node || shared && n.Shared {
			return nil
		}
		return fmt.Errorf("%w: volume %s is attached to node %s, and not shared", pools.ErrInUse, n.Volume, node)
	}
	for _, name := range a.attachmentsOf[n.Volume] {
		other := a.attachments[name]
		if err := elsewhere(other.Node, other.flags.Has(poolmessages.FlagShared)); err != nil {
			return err
		}
	}
	for _, other := range a.admitted.attaching(n.Volume) {
		if err := elsewhere(other.node, other.shared); err != nil {
			return err
		}
	}
	return nil
}

// maySnapshot refuses a snapshot of a volume that does not exist, unless there is one of the name: the
// volume may be gone since.
func (a *Admission) maySnapshot(m *poolmessages.TakeSnapshot) error {
	if a.snapshots[pools.SnapshotName(m.Name)] != nil {
		return nil
	}
	return a.mayChange(m.Volume)
}

// MayRemoveSnapshot refuses to delete a snapshot from which a volume is being made.
func (a *Admission) MayRemoveSnapshot(name string) error {
	if a.admitted.any(func(op operation) bool { return op.does == creating && op.source.Snapshot == name }) {
		return fmt.Errorf("%w: a volume is being made from snapshot %s", volume.ErrBusy, name)
	}
	return nil
}

// MayForgetNode refuses to forget a node that something is attached to, or being attached.
func (a *Admission) MayForgetNode(node string) error {
	for _, there := range a.attachments {
		if there.Node == node {
			return fmt.Errorf("%w: volume %s is attached to node %s", pools.ErrInUse, there.volume, node)
		}
	}
	if a.admitted.any(func(op operation) bool { return op.does == attaching && op.node == node }) {
		return fmt.Errorf("%w: a volume is being attached to node %s", pools.ErrInUse, node)
	}
	return nil
}

// MayFinish lets a volume that is not shared be on one node at a time, as mayAttach does. Of two
// attachments that are not made yet, the older one goes on: the other was not admitted beside it.
func (a *Admission) MayFinish(name string) error {
	mine := a.attachments[name]
	if mine == nil || mine.server != "" {
		return nil
	}
	beside := func(node string, shared bool) bool {
		return node == mine.Node || shared && mine.flags.Has(poolmessages.FlagShared)
	}
	refuse := func(node string) error {
		return fmt.Errorf("%w: volume %s is attached to node %s, and not shared", pools.ErrInUse, mine.volume, node)
	}
	for _, other := range a.attachmentsOf[mine.volume] {
		b := a.attachments[other]
		switch {
		case beside(b.Node, b.flags.Has(poolmessages.FlagShared)):
		case b.server == "" && b.flags.Has(poolmessages.FlagFailed): // it was refused
		case b.server != "", b.created < mine.created, b.created == mine.created && other < name:
			return refuse(b.Node)
		}
	}
	for _, under := range a.admitted.attaching(mine.volume) {
		if !beside(under.node, under.shared) {
			return refuse(under.node)
		}
	}
	return nil
}
