package tasks

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// conflicts is how often a change of a resource is made again because the resource has changed
// meanwhile: nodes and people write to it too.
const conflicts = 5

// read reads a resource. found is false where there is none of that name.
func (t *task) read(ctx context.Context, name string, into client.Object) (found bool, err error) {
	reflect.ValueOf(into).Elem().SetZero() // decoding adds to what is there
	err = t.Resources.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, env.KubernetesError(err, "read the "+rules.ResourceKind(into)+" "+name)
	}
	return true, nil
}

// notWritten makes an error of a write. The write may have been made all the same, and its answer lost:
// the operation goes on later, and looks.
func (t *task) notWritten(err error, doing string) error {
	err = env.KubernetesError(err, doing)
	t.unfinished = err
	return err
}

// create makes a resource, with the finalizer.
func (t *task) create(ctx context.Context, object client.Object) error {
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	if err := t.Resources.Create(ctx, object); err != nil {
		return t.notWritten(err, "create the "+rules.ResourceKind(object)+" "+object.GetName())
	}
	t.Note(object)
	return nil
}

// writeSpec changes a resource's metadata and spec.
func (t *task) writeSpec(ctx context.Context, object client.Object, change func()) error {
	return t.write(ctx, object, change, func() error { return t.Resources.Update(ctx, object) })
}

// writeStatus changes a resource's status.
func (t *task) writeStatus(ctx context.Context, object client.Object, change func()) error {
	return t.write(ctx, object, change, func() error { return t.Resources.Status().Update(ctx, object) })
}

// write makes a change of a resource. Where others have changed the resource meanwhile, it begins anew
// with what it is now.
func (t *task) write(ctx context.Context, object client.Object, change func(), update func() error) error {
	name, uid := object.GetName(), object.GetUID()
	doing := "change the " + rules.ResourceKind(object) + " " + name
	for attempt := 1; ; attempt++ {
		change()
		err := update()
		if err == nil {
			t.Note(object)
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == conflicts {
			return t.notWritten(err, doing)
		}
		found, err := t.read(ctx, name, object)
		if err != nil {
			return err
		}
		if !found || object.GetUID() != uid {
			return rules.Errorf(volume.ErrBusy, "%s: it was deleted meanwhile", doing)
		}
	}
}

// keep adds the finalizer to a resource that was made without it, by a person or from a backup: what it
// stands for has to go first.
func (t *task) keep(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil || rules.HasFinalizer(object) {
		return nil
	}
	return t.writeSpec(ctx, object, func() {
		if !rules.HasFinalizer(object) {
			object.SetFinalizers(append(object.GetFinalizers(), v1alpha1.Finalizer))
		}
	})
}

// startDeletion marks a resource as one to be deleted, which is the intent. gone is true where no
// finalizer keeps it, or another one of its name has taken its place.
func (t *task) startDeletion(ctx context.Context, object client.Object) (gone bool, err error) {
	if object.GetDeletionTimestamp() != nil {
		return false, nil
	}
	name, uid := object.GetName(), object.GetUID()
	err = t.Resources.Delete(ctx, object, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, t.notWritten(err, "delete the "+rules.ResourceKind(object)+" "+name)
	}
	found, err := t.read(ctx, name, object)
	if err != nil {
		return false, err
	}
	if !found {
		object.SetName(name)
		t.NoteGone(rules.ResourceKind(object), name)
		return true, nil
	}
	t.Note(object)
	return object.GetUID() != uid, nil
}

// letGo removes the finalizer of a resource that is to be deleted: what it stood for is gone.
func (t *task) letGo(ctx context.Context, object client.Object) error {
	name, uid := object.GetName(), object.GetUID()
	for attempt := 1; ; attempt++ {
		left := slices.DeleteFunc(object.GetFinalizers(), func(s string) bool { return s == v1alpha1.Finalizer })
		object.SetFinalizers(left)
		err := t.Resources.Update(ctx, object)
		switch {
		case err == nil && len(left) > 0:
			t.Note(object) // others keep it
			return nil
		case err == nil, apierrors.IsNotFound(err):
			t.NoteGone(rules.ResourceKind(object), name)
			return nil
		case !apierrors.IsConflict(err) || attempt == conflicts:
			return t.notWritten(err, "release the "+rules.ResourceKind(object)+" "+name)
		}
		found, err := t.read(ctx, name, object)
		if err != nil {
			return err
		}
		if !found || object.GetUID() != uid {
			t.NoteGone(rules.ResourceKind(object), name)
			return nil
		}
	}
}

// remove deletes a resource that stands for nothing.
func (t *task) remove(ctx context.Context, object client.Object) error {
	gone, err := t.startDeletion(ctx, object)
	if gone || err != nil {
		return err
	}
	return t.letGo(ctx, object)
}

// tell makes an event of a resource.
func (t *task) tell(object client.Object, reason, text string) {
	t.Resources.Events.Event(object, corev1.EventTypeNormal, reason, text)
}

// warn makes a warning of a resource.
func (t *task) warn(object client.Object, reason string, err error) {
	t.Resources.Events.Event(object, corev1.EventTypeWarning, reason, volume.OneLine(err))
}
