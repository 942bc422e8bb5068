package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/katbox/katbox/internal/lib/crashpoint"
)

// crashing has the points before and after each change of an object at which a test can end the
// controller. It is the client itself in every other build.
type crashing struct {
	client.WithWatch
	scheme *runtime.Scheme
}

func (c crashing) around(verb string, object client.Object, change func() error) error {
	kind, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	return crashpoint.Around("api/"+verb+":"+kind.Kind, change)
}

func (c crashing) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.around("create", o, func() error { return c.WithWatch.Create(ctx, o, opts...) })
}

func (c crashing) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.around("update", o, func() error { return c.WithWatch.Update(ctx, o, opts...) })
}

func (c crashing) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return c.around("patch", o, func() error { return c.WithWatch.Patch(ctx, o, p, opts...) })
}

func (c crashing) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.around("delete", o, func() error { return c.WithWatch.Delete(ctx, o, opts...) })
}

func (c crashing) Status() client.SubResourceWriter { return crashingStatus{c.WithWatch.Status(), c} }

type crashingStatus struct {
	client.SubResourceWriter
	of crashing
}

func (s crashingStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.of.around("status", o, func() error { return s.SubResourceWriter.Update(ctx, o, opts...) })
}

func (s crashingStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.around("status", o, func() error { return s.SubResourceWriter.Patch(ctx, o, p, opts...) })
}
