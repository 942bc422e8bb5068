package persistent

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Task does what the front asks for one volume; see [Front]. Its methods are sequential code in a worker.
type Task interface {
	Stage(ctx context.Context, s pools.Staging) error
	Unstage(ctx context.Context, path string) error
	Publish(ctx context.Context, p pools.NodePublication) error
	Unpublish(ctx context.Context, target string) error
	Expand(ctx context.Context, e pools.NodeExpansion) (int64, error)
	Stats(ctx context.Context, path string) (volume.Stats, error)
}

// Plan returns the operation with which a task carries out a request of the front; nil for any other one.
func Plan(m messages.Request, t Task) *actors.Operation {
	switch m := m.(type) {
	case *messages.StageVolume:
		same := func(o *messages.StageVolume) bool { return m.Staging.Same(o.Staging) }
		return actors.Change("stage", m, same, func(ctx context.Context) error { return t.Stage(ctx, m.Staging) })
	case *messages.UnstageVolume:
		same := func(o *messages.UnstageVolume) bool { return o.Path == m.Path }
		return actors.Change("unstage", m, same, func(ctx context.Context) error { return t.Unstage(ctx, m.Path) })
	case *messages.PublishStaged:
		same := func(o *messages.PublishStaged) bool { return m.Publication.Same(o.Publication) }
		return actors.Change("publish", m, same, func(ctx context.Context) error { return t.Publish(ctx, m.Publication) })
	case *messages.UnpublishStaged:
		same := func(o *messages.UnpublishStaged) bool { return o.Target == m.Target }
		return actors.Change("unpublish", m, same, func(ctx context.Context) error { return t.Unpublish(ctx, m.Target) })
	case *messages.ExpandStaged:
		same := func(o *messages.ExpandStaged) bool { return o.Expansion == m.Expansion }
		return actors.Order("expand", m, same, func(ctx context.Context) (int64, error) { return t.Expand(ctx, m.Expansion) })
	case *messages.StagedStats:
		same := func(o *messages.StagedStats) bool { return o.Path == m.Path }
		return actors.Order("stats", m, same, func(ctx context.Context) (volume.Stats, error) { return t.Stats(ctx, m.Path) })
	}
	return nil
}
