package pools

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/classes"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/index"
	"github.com/katbox/katbox/actors/pools/nodes"
	"github.com/katbox/katbox/actors/pools/pool"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/actors/pools/tasks"
	"github.com/katbox/katbox/actors/pools/unclaimed"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// answerMayDelete decides in the supervisor's turn.
func (o *owner) answerMayDelete(m *poolmessages.MayDelete) {
	err := error(nil)
	switch {
	case !o.listed:
		err = errStarting
	case m.Kind == rules.KindVolume:
		err = o.admission.MayRemove(m.Name)
	case m.Kind == rules.KindSnapshot:
		err = o.admission.MayRemoveSnapshot(m.Name)
	case m.Kind == rules.KindNode:
		err = o.mayForgetNode(m.Name)
	}
	m.Send(struct{}{}, err)
}

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
	// early is what nodes have told before all Pools were known: who may have a disk is not known before.
	early map[string]*poolmessages.NodePools
	// otherClass are the classes that nodes want, by disks, and that an Event has said are not those of the Pools.
	otherClass map[string]string
	// generations are those of the PoolClasses.
	generations map[string]int64
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
		disks:  nodes.NewDisks(), early: map[string]*poolmessages.NodePools{}, otherClass: map[string]string{},
		generations: map[string]int64{}, claims: newClaims(), bound: newBindings(),
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
		_, name := messages.SplitKey(m.ID)
		return o.askedPool(m, name)
	case *poolmessages.PoolTook:
		_, name := messages.SplitKey(m.ID)
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
	if !o.index.HasPool(name) {
		m.Fail(rules.UnknownPool(name))
		return true
	}
	return false
}

// Wake has nothing to hand over: what is known of a resource is in the resource.
func (o *owner) Wake(messages.Request) any { return nil }

// Props describes the actor of a pool, a volume, a snapshot or an attachment.
func (o *owner) Props(id volume.ID, _ any) *actor.Props {
	if kind, name := messages.SplitKey(id); kind == rules.KindPool {
		return pool.Props(o.Environment, name, o.pools[name])
	}
	return tasks.Props(o.Environment, id)
}

// Idle forgets what was admitted for an actor that has done all that it was asked.
func (o *owner) Idle(id volume.ID, _ any, all bool) {
	if all {
		o.admission.End(id)
	}
}

// Sleep forgets what was admitted for an actor that has ended. A Pool of the same name may have come
// since.
func (o *owner) Sleep(id volume.ID, _ any) {
	o.settle(id)
	kind, name := messages.SplitKey(id)
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
		o.poolsOfNode(m)
	case *poolmessages.NodeAway:
		o.nodeLeft(m)
	case *poolmessages.WarnPool:
		o.warnPool(m.Pool, m.Reason, m.Text)
	case *poolmessages.FindDisk:
		m.Send(o.disks.Find(m.UUID, m.Last))
	case *poolmessages.WantedPool:
		m.Send(o.wantedPool(m.UUID), nil)
	case *poolmessages.StaleLabels:
		m.Send(o.disks.StaleLabels(m.Node), nil)
	case *poolmessages.TakePlace:
		m.Send(o.takePlace(m), nil)
	case *poolmessages.MayDelete:
		o.answerMayDelete(m)
	case *poolmessages.FindRequested:
		m.Send(o.index.RequestedAs(m.Request), nil)
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

// goOn starts the actor of a resource with something left to do. One that has an actor is being
// changed; Sleep looks at it again.
func (o *owner) goOn(id volume.ID) {
	if o.listed && !o.supervisor.IsAwake(id) {
		o.supervisor.Wake(id, nil, &messages.Resume{})
	}
}

// takePlace decides in the supervisor's turn.
func (o *owner) takePlace(m *poolmessages.TakePlace) string {
	if has := o.places[m.At]; has != "" && has != m.Pool {
		return has
	}
	if o.pools[m.Pool] != nil {
		o.places.Leave(m.Pool)
		o.places[m.At] = m.Pool
	}
	return m.Pool
}
