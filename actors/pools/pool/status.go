package pool

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// probeTimeAge is how old the time of the last probe in the status gets when nothing else changes.
const probeTimeAge = 5 * time.Minute

// saved is what came of writing a Pool.
// status is what the Pool's status has to say.
func (p *poolActor) status() v1alpha1.PoolStatus {
	deleting := p.object.DeletionTimestamp != nil
	s := *p.object.Status.DeepCopy()
	s.State = p.state(deleting)
	s.Conditions = p.conditions(s.Conditions, p.object.Generation, deleting)
	s.ObservedGeneration = p.object.Generation
	s.Counters = v1alpha1.PoolCounters{
		Volumes: int32(p.counts.Managed), External: int32(p.counts.External),
		Snapshots: int32(p.counts.Snapshots), Attachments: int32(p.counts.Attachments), Retained: int32(p.counts.RetainedVolumes),
	}
	if p.last.client != nil {
		s.Version = p.last.health.Version
		s.Capacity = capacityOf(p.last.on, p.mode)
		s.Capacity.Retained = rules.Quantity(p.counts.Retained)
		s.VPSA, s.Local = p.arrayStatus(), p.localStatus()
	}
	if !p.syncedAt.IsZero() {
		s.LastSyncTime = &metav1.Time{Time: p.syncedAt.Truncate(time.Second)}
	}
	return s
}

// arrayStatus is what the array says of itself; empty for a pool on a node.
func (p *poolActor) arrayStatus() v1alpha1.VPSAStatus {
	if p.object.Spec.Local != nil {
		return v1alpha1.VPSAStatus{}
	}
	return v1alpha1.VPSAStatus{
		PoolID: p.last.on.ID, IQN: p.last.health.IQN, Portal: p.last.health.Portal, CHAPSecretName: p.last.chapSecret,
	}
}

// localStatus is what the node says of the pool on its disk.
func (p *poolActor) localStatus() v1alpha1.LocalStatus {
	on := p.last.health.Disk
	if p.object.Spec.Local == nil {
		return v1alpha1.LocalStatus{}
	}
	return v1alpha1.LocalStatus{
		UUID: p.last.on.ID, Node: on.Node, Path: on.Path, Backend: on.Backend, FSType: on.FSType, HardLimit: on.HardLimit,
		KeyHash: cmp.Or(on.KeyHash, p.object.Status.Local.KeyHash),
	}
}

// differs reports whether a status has to be written: the times of the last look alone are no reason
// but every few minutes.
func differs(before, after v1alpha1.PoolStatus, now time.Time) bool {
	if after.LastProbeTime == nil || now.Sub(after.LastProbeTime.Time) >= probeTimeAge {
		return true
	}
	before.LastSyncTime, after.LastSyncTime = nil, nil
	return !equality.Semantic.DeepEqual(before, after)
}

// save writes the status, if it has changed, and the finalizer, if there is none. One writes at a
// time.
func (p *poolActor) save(c actor.Context) {
	if !p.dirty || p.saving.Runs() || p.reachable.status == "" && p.object.Status.State != "" {
		return
	}
	p.dirty = false
	after, now := p.status(), time.Now()
	unprotected := p.object.DeletionTimestamp == nil && !slices.Contains(p.object.Finalizers, v1alpha1.Finalizer)
	if !unprotected && !differs(p.object.Status, after, now) {
		return
	}
	if !p.last.began.IsZero() {
		after.LastProbeTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	object := p.object
	err := p.saving.Begin(p.System, c.Self(), &workEnded{}, func() (*v1alpha1.Pool, error) {
		return p.write(p.Context, object, after, unprotected)
	})
	p.dirty = err != nil
}

// write writes the status of the Pool, and the finalizer where there is none.
func (p *poolActor) write(
	ctx context.Context, object *v1alpha1.Pool, status v1alpha1.PoolStatus, unprotected bool,
) (*v1alpha1.Pool, error) {
	next := object.DeepCopy()
	if unprotected {
		if err := p.Protect(ctx, next); err != nil {
			return nil, err
		}
	}
	base := next.DeepCopy()
	next.Status = status
	if err := p.Resources.Status().Patch(ctx, next, client.MergeFrom(base)); err != nil {
		return nil, err
	}
	return next, nil
}

// saved takes over what was written. What could not be is written after the next probe.
func (p *poolActor) saved(object *v1alpha1.Pool, err error) {
	switch {
	case err == nil:
		if rules.ResourceVersion(object) >= rules.ResourceVersion(p.object) && object.Generation >= p.object.Generation {
			p.object = object
		}
	case !apierrors.IsNotFound(err):
		p.Log.Error(err, "the status of a pool cannot be written", "pool", p.name)
	}
}
