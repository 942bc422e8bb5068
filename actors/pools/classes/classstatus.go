package classes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// saveAgainAfter is how long after a failure the status of a class is written again.
const saveAgainAfter = 5 * time.Second

// classStatus sums the pools of a class up. A class without pools is Ready.
func classStatus(c *v1alpha1.PoolClass, members []*poolmessages.PoolReport) v1alpha1.PoolClassStatus {
	s := v1alpha1.PoolClassStatus{State: v1alpha1.ClassReady, ObservedGeneration: c.Generation}
	s.Conditions = slices.Clone(c.Status.Conditions)
	mode, failed := array.Normal, []string{}
	var total, available, provisioned, retained int64
	for _, p := range members {
		s.Counters.Pools++
		s.Counters.Volumes += int32(p.Counts.Managed + p.Counts.External)
		s.Counters.Snapshots += int32(p.Counts.Snapshots)
		s.Counters.Retained += int32(p.Counts.RetainedVolumes)
		retained += p.Counts.Retained
		total, available, provisioned = total+p.On.Total, available+p.On.Available, provisioned+p.On.Provisioned
		mode = rules.WorseMode(mode, p.Mode)
		switch p.State {
		case v1alpha1.PoolReady:
			s.Counters.Ready++
		case v1alpha1.PoolFailed:
			failed = append(failed, p.Name)
		}
	}
	s.Capacity = v1alpha1.Capacity{
		Total: rules.Quantity(total), Available: rules.Quantity(available), Provisioned: rules.Quantity(provisioned),
		Retained: rules.Quantity(retained),
		Mode:     v1alpha1.CapacityMode(mode),
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: c.Generation}
	if len(failed) > 0 {
		s.State = v1alpha1.ClassFailed
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "PoolFailed", "failed pools: "+strings.Join(failed, ", ")
	}
	if c.DeletionTimestamp != nil {
		s.State = v1alpha1.ClassDeleting
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Deleting", ""
	}
	meta.SetStatusCondition(&s.Conditions, ready)
	return s
}

// update writes the status of a class, if it has changed, and lets a class go that is being deleted.
// One worker writes a class at a time.
func (k *classes) update(c actor.Context, name string) {
	one := k.classes[name]
	if one == nil || one.saving || !k.listed {
		return
	}
	members := k.members(name)
	status := classStatus(one.object, members)
	k.tell(one, status)
	leaves := rules.IsDeleting(one.object) && k.mayLeave(one, members)
	unprotected := one.object.DeletionTimestamp == nil && !slices.Contains(one.object.Finalizers, v1alpha1.Finalizer)
	if !leaves && !unprotected && equality.Semantic.DeepEqual(one.object.Status, status) {
		return
	}
	object, self, saved := one.object.DeepCopy(), c.Self(), &classSaved{class: one, name: name}
	err := actors.InWorker(k.System, func() error {
		if leaves {
			return k.Unprotect(k.Context, object, object.Name)
		}
		saved.object = object
		return k.write(k.Context, object, status, unprotected)
	}, func(err error) {
		saved.err = err
		k.Root.Send(self, saved)
	})
	one.saving = err == nil
}

// write writes the status of a class, and the finalizer where there is none.
func (k *classes) write(ctx context.Context, object *v1alpha1.PoolClass, status v1alpha1.PoolClassStatus, unprotected bool) error {
	if unprotected {
		if err := k.Protect(ctx, object); err != nil {
			return err
		}
	}
	base := object.DeepCopy()
	object.Status = status
	return k.Resources.Status().Patch(ctx, object, client.MergeFrom(base))
}

// mayLeave reports whether a class that is being deleted may go.
func (k *classes) mayLeave(one *class, members []*poolmessages.PoolReport) bool {
	why := ""
	switch {
	case one.object.Spec.Default:
		why = "it is the default class; set spec.default to false first"
	case len(members) > 0:
		var names []string
		for _, p := range members {
			names = append(names, p.Name)
		}
		why = fmt.Sprintf("it has %d pools: %s", len(members), strings.Join(names, ", "))
	}
	if why != "" && why != one.blocked {
		k.Resources.Events.Event(one.object, corev1.EventTypeWarning, "DeleteBlocked", why)
	}
	one.blocked = why
	return why == ""
}

// tell reports a state that is new as an Event.
func (k *classes) tell(one *class, status v1alpha1.PoolClassStatus) {
	if status.State == one.told {
		return
	}
	one.told = status.State
	kind, why := corev1.EventTypeNormal, "the class is "+string(status.State)
	if status.State == v1alpha1.ClassFailed {
		kind, why = corev1.EventTypeWarning, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message
	}
	k.Resources.Events.Event(one.object, kind, string(status.State), why)
}

// saved takes over what was written, and writes what has changed since.
func (k *classes) saved(c actor.Context, s *classSaved) {
	name, one := s.name, s.class
	if k.classes[name] != one {
		return // it is gone, and there may be another one of its name
	}
	one.saving = false
	switch {
	case apierrors.IsNotFound(s.err):
		// The watch is about to tell that it is gone.
	case s.err != nil:
		k.Log.Error(s.err, "the status of a class cannot be written", "class", name)
		root, self := c.ActorSystem().Root, c.Self()
		time.AfterFunc(saveAgainAfter, func() { root.Send(self, &classAgain{name}) })
	case s.object != nil:
		if !rules.IsOlder(rules.ResourceVersion(s.object), rules.ResourceVersion(one.object)) {
			one.object = s.object
		}
		k.update(c, name)
	}
}
