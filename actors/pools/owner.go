package pools

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/classes"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/index"
	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/actors/pools/pool"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/actors/pools/unclaimed"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// errStarting answers calls before all resources are known.
var errStarting = fmt.Errorf("%w: the controller is starting and reads the resources", volume.ErrUnavailable)

// owner owns the index of all resources. A pool has an actor as long as there is its Pool; a volume, a
// snapshot and an attachment have one while they are changing. It is the supervisor's [actors.Kind],
// and acts only in the supervisor's turn.
type owner struct {
	*env.Environment
	supervisor *actors.Supervisor
	index      *index.Index
	admission  *index.Admission
	// pools are the Pools, as they were seen last.
	pools map[string]*v1alpha1.Pool
	nodes clusterNodes
	// places are the pools on arrays, with the Pool that has each.
	places nodes.Places
	// disks are those of nodes.
	disks *nodes.Disks
	// bound are PersistentVolumes whose claims the resources of their volumes do not name.
	bound bindings
	// claims are those with something to say of their volumes.
	claims claims
	// listed: every resource has been seen once.
	listed bool
}

func newOwner(e *env.Environment) *owner {
	known, objects := index.New(), map[string]*v1alpha1.Pool{}
	known.UUIDOf = e.UUIDOf
	return &owner{
		Environment: e, index: known, admission: index.NewAdmission(known, objects), nodes: clusterNodes{}, pools: objects,
		places: nodes.Places{},
		disks:  nodes.NewDisks(), claims: newClaims(), bound: newBindings(),
	}
}

// Start spawns the actor of the classes, and the one that looks for volumes without a claim.
func (o *owner) Start(s *actors.Supervisor) {
	o.supervisor = s
	s.Spawn(poolmessages.ClassesName, classes.Props(o.Environment))
	s.Spawn(unclaimed.Name, unclaimed.Props(o.Environment))
}

// Stop has no timers to stop.
func (o *owner) Stop() {}

// Asked decides on a request before its actor gets it.
func (o *owner) Asked(m messages.Request) bool {
	if !o.listed {
		m.Fail(errStarting)
		return true
	}
	switch m := m.(type) {
	case *poolmessages.UsePool:
		return o.askedPool(m, m.Pool)
	case *poolmessages.DoubtPool:
		_, name := rules.SplitKey(m.ID)
		return o.askedPool(m, name)
	case *poolmessages.PoolTook:
		_, name := rules.SplitKey(m.ID)
		return o.askedPool(m, name)
	}
	if o.admission.IsElsewhere(m) {
		return true
	}
	if err := o.admission.Admit(m); err != nil {
		m.Fail(err)
		o.settle(m.Route().ID)
		return true
	}
	return false
}

// askedPool refuses what is asked of a pool that there is not.
func (o *owner) askedPool(m messages.Request, name string) bool {
	if p := o.index.Pools[name]; p == nil || !p.Known {
		m.Fail(rules.UnknownPool(name))
		return true
	}
	return false
}

// Wake has nothing to hand over: what is known of a resource is in the resource.
func (o *owner) Wake(messages.Request) any { return nil }

// Props describes the actor of a pool, a volume, a snapshot or an attachment.
func (o *owner) Props(id volume.ID, _ any) *actor.Props {
	if kind, name := rules.SplitKey(id); kind == rules.KindPool {
		return pool.Props(o.Environment, name, o.pools[name])
	}
	return subjectProps(o.Environment, id)
}

// Idle forgets what was admitted for an actor that has done all that it was asked.
func (o *owner) Idle(id volume.ID, state any) {
	if received, ok := state.(actors.Resting); ok && uint64(received) == o.supervisor.Sent(id) {
		o.admission.End(id)
	}
}

// Sleep forgets what was admitted for an actor that has ended. A Pool of the same name may have come
// since.
func (o *owner) Sleep(id volume.ID, _ any) {
	o.settle(id)
	kind, name := rules.SplitKey(id)
	switch kind {
	case rules.KindPool:
		o.wakePool(name)
	case rules.KindDisk:
		o.settleDisk(name)
	case rules.KindLabels:
		o.settleLabels(name)
	case rules.KindVolume, rules.KindSnapshot, rules.KindAttachment:
		// A person may have deleted the resource while the last task ran.
		if kind == rules.KindVolume && o.claims.behind[name] {
			o.catchUp(name)
		} else if id, ok := o.index.Unfinished(resourceOf[kind], name); ok {
			o.goOn(id)
		}
	}
}

// resourceOf has the resources of actors' kinds.
var resourceOf = map[string]string{rules.KindVolume: poolmessages.PoolVolumeKind, rules.KindSnapshot: poolmessages.PoolSnapshotKind,
	rules.KindAttachment: poolmessages.PoolAttachmentKind}

// settle forgets what was admitted for a resource without an actor.
func (o *owner) settle(id volume.ID) {
	if !o.supervisor.IsAwake(id) {
		o.admission.End(id)
	}
}

// Receive handles what concerns all resources.
func (o *owner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *poolmessages.Seen:
		o.see(m)
	case *poolmessages.Gone:
		o.drop(m)
	case *poolmessages.Listed:
		o.begin()
	case *poolmessages.CountPool:
		m.Send(o.index.Counts(m.Name), nil)
	case *poolmessages.ListPool:
		m.Send(o.index.Contents(m.Name), nil)
	case *poolmessages.NodePools:
		o.toldOf(m)
	case *poolmessages.NodeAway:
		o.left(m)
	case *poolmessages.WarnPool:
		o.warnPool(m.Pool, m.Reason, m.Text)
	case *poolmessages.FindDisk:
		m.Send(o.disks.Find(m.UUID, m.Last))
	case *poolmessages.WantedPool:
		m.Send(o.wantedPool(m.UUID), nil)
	case *poolmessages.StaleLabels:
		m.Send(o.staleLabels(m.Node), nil)
	case *poolmessages.TakePlace:
		m.Send(o.takePlace(m), nil)
	case *poolmessages.MayDelete:
		o.answerMayDelete(m)
	case *poolmessages.FindRequested:
		m.Send(o.index.Requested[m.Request], nil)
	case *poolmessages.ListClaimed:
		if o.answers(m) {
			m.Send(o.index.ClaimedPage(m.After), nil)
		}
	case *poolmessages.ListRetained:
		m.Send(o.index.RetainedOf(m.Namespace), nil)
	case *poolmessages.ClaimDisk:
		if o.answers(m) {
			m.Send(o.index.ClaimDisk(m), nil)
		}
	case *poolmessages.MayAttach:
		m.Send(struct{}{}, o.admission.MayFinish(m.Attachment))
	case *poolmessages.FindVolume:
		if o.answers(m) {
			o.admission.Find(m)
		}
	case *poolmessages.ListVolumes:
		if o.answers(m) {
			m.Send(o.index.VolumePage(m.Kind, m.Page), nil)
		}
	case *poolmessages.ListSnapshots:
		if o.answers(m) {
			m.Send(o.index.SnapshotPage(m.Kind, m.Selection, m.Page), nil)
		}
	default:
		actors.IgnoreLifecycle(o.Log, c)
	}
}

// answers refuses a question before all resources are known.
func (o *owner) answers(m messages.Failer) bool {
	if !o.listed {
		m.Fail(errStarting)
	}
	return o.listed
}

// see takes over what a resource is, and lets what is unfinished go on.
func (o *owner) see(m *poolmessages.Seen) {
	if c, ok := m.Object.(*metav1.PartialObjectMetadata); ok && c.Kind == poolmessages.PersistentVolumeClaimKind {
		o.claimSeen(c)
		return
	}
	if pv, ok := m.Object.(*corev1.PersistentVolume); ok {
		o.boundSeen(pv)
		return
	}
	o.nodeSeen(m.Object)
	retained := o.isRetained(m.Object)
	if !o.index.See(m) {
		return
	}
	switch object := m.Object.(type) {
	case *v1alpha1.PoolVolume:
		o.volumeSeen(object)
		o.tellRetention(object, retained)
	case *v1alpha1.Pool:
		o.seePool(object)
		return
	case *v1alpha1.PoolClass:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ClassSeen{Object: object})
		o.lookAtClass(object)
		return
	}
	if id, ok := o.index.Unfinished(rules.ResourceKind(m.Object), m.Object.GetName()); ok {
		o.goOn(id)
	}
}

// drop forgets a resource, of which a pool or a class that is being deleted may have waited for the end.
func (o *owner) drop(m *poolmessages.Gone) {
	switch m.Kind {
	case poolmessages.PersistentVolumeClaimKind:
		o.claimGone(m.Name)
		return
	case poolmessages.PersistentVolumeKind:
		o.bound.drop(m.Name)
		return
	}
	node := o.nodeOf(m)
	pool := o.index.Drop(m)
	o.nodeGone(m, node)
	switch m.Kind {
	case poolmessages.PoolKind:
		delete(o.pools, m.Name)
		o.UUIDs.Delete(m.Name)
		for uuid := range o.disks.Pools {
			if o.disks.Pools[uuid][m.Name] {
				defer o.poolOfDiskGone(uuid, m.Name)
			}
		}
		o.places.Leave(m.Name)
		o.supervisor.Tell(rules.KeyOf(rules.KindPool, m.Name), &poolmessages.PoolEnds{})
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.PoolGone{Name: m.Name})
	case poolmessages.PoolClassKind:
		o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ClassGone{Name: m.Name})
	default:
		if m.Kind == poolmessages.PoolVolumeKind && pool != "" {
			delete(o.claims.behind, m.Name)
			o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.VolumeNotRetained{Name: m.Name})
			o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.ReleasePool{Volume: m.Name, Gone: true})
		}
		if p := o.pools[pool]; p != nil && p.Spec.Local != nil {
			o.look(p.Spec.Local.UUID, true) // it has more room now
			o.settleDisk(p.Spec.Local.UUID)
		}
		if p := o.pools[pool]; p != nil && p.DeletionTimestamp != nil {
			o.supervisor.Tell(rules.KeyOf(rules.KindPool, pool), &poolmessages.PoolCountsChanged{Counts: o.index.Counts(pool)})
		}
	}
}

// seePool tells the actor of a pool, which it starts, and the classes.
func (o *owner) seePool(p *v1alpha1.Pool) {
	if before := o.pools[p.Name]; before != nil && before.UID == p.UID &&
		rules.IsOlder(rules.ResourceVersion(p), rules.ResourceVersion(before)) {
		return
	}
	o.pools[p.Name] = p
	member := &poolmessages.PoolMember{Pool: p.Name, Class: p.Spec.ClassName, Kind: rules.KindOfPool(p)}
	if p.Spec.Local != nil {
		member.UUID = p.Spec.Local.UUID
		o.UUIDs.Store(p.Name, member.UUID)
		defer o.poolOfDisk(p)
	}
	o.Root.Send(o.Single(poolmessages.ClassesName), member)
	if id := rules.KeyOf(rules.KindPool, p.Name); o.supervisor.IsAwake(id) {
		o.supervisor.Tell(id, &poolmessages.PoolSeen{Object: p, Counts: o.index.Counts(p.Name)})
	} else {
		o.wakePool(p.Name)
	}
}

// wakePool starts the actor of a pool.
func (o *owner) wakePool(name string) {
	if p := o.pools[name]; p != nil && o.listed {
		o.supervisor.Wake(rules.KeyOf(rules.KindPool, name), nil, &poolmessages.PoolSeen{Object: p, Counts: o.index.Counts(p.Name)})
	}
}

// begin lets everything go on that an earlier run has left unfinished.
func (o *owner) begin() {
	if o.listed {
		return
	}
	o.listed = true
	o.Root.Send(o.Single(poolmessages.ClassesName), &poolmessages.Listed{})
	o.places.Remember(o.pools)
	for name := range o.pools {
		o.wakePool(name)
	}
	for _, id := range o.index.AllUnfinished() {
		o.goOn(id)
	}
	for name := range o.claims.behind {
		o.catchUp(name)
	}
	for node := range o.nodes {
		o.forgetNode(node)
		o.settleLabels(node)
	}
	o.takeEarly()
}

// goOn starts the actor of a resource with something left to do. One that has an actor is being
// changed; Sleep looks at it again.
func (o *owner) goOn(id volume.ID) {
	if o.listed && !o.supervisor.IsAwake(id) {
		o.supervisor.Wake(id, nil, &messages.Resume{})
	}
}
