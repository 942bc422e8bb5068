package env

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// Unprotect removes our finalizer from a resource.
func (e *Environment) Unprotect(ctx context.Context, object client.Object, name string) error {
	err := e.changeFinalizers(ctx, object, name, func(all []string) []string {
		return slices.DeleteFunc(all, func(f string) bool { return f == v1alpha1.Finalizer })
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of %s: %w", name, err)
	}
	object.SetName(name) // for a Delete, which finds nothing either where there is none
	return nil
}

// Protect adds our finalizer to a resource.
func (e *Environment) Protect(ctx context.Context, object client.Object) error {
	name := object.GetName()
	err := e.changeFinalizers(ctx, object, name, func(all []string) []string {
		if slices.Contains(all, v1alpha1.Finalizer) {
			return all
		}
		return append(all, v1alpha1.Finalizer)
	})
	if err != nil {
		return fmt.Errorf("add the finalizer to %s: %w", name, err)
	}
	return nil
}

// changeFinalizers changes the finalizers of a resource as it is now. Others change the resource at the
// same time.
func (e *Environment) changeFinalizers(ctx context.Context, object client.Object, name string, change func([]string) []string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		reflect.ValueOf(object).Elem().SetZero() // what is read into it would be added to what it has
		if err := e.Resources.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return err
		}
		base := object.DeepCopyObject().(client.Object)
		object.SetFinalizers(change(slices.Clone(object.GetFinalizers())))
		if slices.Equal(object.GetFinalizers(), base.GetFinalizers()) {
			return nil
		}
		return e.Resources.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}
