package pool

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// finalize lets a Pool go that is being deleted, once nothing of ours is left on it. With the
// annotation [v1alpha1.Forget] it goes at once, and what is on the array stays there.
func (p *poolActor) finalize(c actor.Context) {
	if p.dropping.Runs() || p.syncing.Runs() || p.ended || !p.counted || p.object == nil || !rules.IsDeleting(p.object) {
		return
	}
	forget := p.object.Annotations[v1alpha1.Forget] == "true"
	if why := blockedBy(p.object, p.counts); why != "" && !forget {
		if why != p.blocked {
			p.Resources.Events.Event(p.object, corev1.EventTypeWarning, "DeleteBlocked", why)
		}
		p.blocked = why
		return
	}
	c.Send(p.Single(poolmessages.ClassesName), p.figures()) // no room is promised from here on
	object := p.object
	// Where no worker takes it, it is tried again after the next probe.
	_ = p.dropping.Begin(p.System, c.Self(), &workEnded{}, func() (struct{}, error) {
		return struct{}{}, leave(p.Context, p.Environment, object, forget)
	})
}

// blockedBy says what a Pool that is being deleted waits for; empty when it waits for nothing.
func blockedBy(p *v1alpha1.Pool, has poolmessages.PoolCounts) string {
	if has.Managed == 0 && has.Attachments == 0 && has.ManagedSnapshots == 0 {
		return ""
	}
	volumes, what := fmt.Sprintf("%d volumes", has.Managed), "delete the claims"
	if has.RetainedVolumes > 0 {
		volumes += fmt.Sprintf(" (%d of them retained)", has.RetainedVolumes)
		what += " and the PoolVolumes that are Retained"
	}
	return fmt.Sprintf("the pool has %s and %d snapshots of Katbox, and %d attachments; %s, "+
		"or, if the %[5]s is gone for ever, set the annotation %[6]s to \"true\": its resources go then, and nothing on the %[5]s",
		volumes, has.ManagedSnapshots, has.Attachments, what, rules.Medium(rules.KindOfPool(p)), v1alpha1.Forget)
}

// leave drops what resources the Pool has, and the Pool. Nothing on the array changes.
func leave(ctx context.Context, e *env.Environment, p *v1alpha1.Pool, forget bool) error {
	counts, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.CountPool{Name: p.Name})
	if err != nil {
		return err
	}
	if why := blockedBy(p, counts); why != "" && !forget {
		return errors.New(why)
	}
	there, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.ListPool{Name: p.Name})
	if err != nil {
		return err
	}
	for _, a := range there.Attachments {
		if err := dropResource(ctx, e, &v1alpha1.PoolAttachment{}, poolmessages.PoolAttachmentKind, a.Name); err != nil {
			return err
		}
	}
	for _, s := range there.Snapshots {
		if err := dropResource(ctx, e, &v1alpha1.PoolSnapshot{}, poolmessages.PoolSnapshotKind, s.Name); err != nil {
			return err
		}
	}
	for _, v := range there.Volumes {
		if err := dropResource(ctx, e, &v1alpha1.PoolVolume{}, poolmessages.PoolVolumeKind, v.Name); err != nil {
			return err
		}
	}
	if err := nothingComes(ctx, e, p.Name); err != nil {
		return err
	}
	if p.Spec.Local == nil {
		if err := removeCHAP(ctx, e, p.Name); err != nil {
			return err
		}
	}
	return e.Unprotect(ctx, &v1alpha1.Pool{}, p.Name)
}

// nothingComes returns an error while a task may still make a resource on a pool: it keeps room before,
// and until the resource is known.
func nothingComes(ctx context.Context, e *env.Environment, pool string) error {
	reserved, err := actors.Ask(ctx, e.Root, e.Single(poolmessages.ClassesName), &poolmessages.CountReserved{Pool: pool})
	if err != nil {
		return err
	}
	left, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.CountPool{Name: pool})
	if err != nil {
		return err
	}
	if reserved > 0 || left != (poolmessages.PoolCounts{}) {
		return fmt.Errorf("%w: pool %s: %d volumes are being made, and it has %+v", volume.ErrBusy, pool, reserved, left)
	}
	return nil
}

// dropResource deletes a resource without what it stands for. Its finalizer goes first: a task that saw
// a resource with both a finalizer and an order to delete it would delete the volume on the array.
func dropResource(ctx context.Context, e *env.Environment, object client.Object, kind, name string) error {
	if err := e.Unprotect(ctx, object, name); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(e.Resources.Delete(ctx, object)); err != nil {
		return fmt.Errorf("delete %s %s: %w", kind, name, err)
	}
	e.NoteGone(kind, name)
	return nil
}
