package arrays

import (
	"context"
	"slices"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// subject is a volume that is being changed or measured.
type subject struct {
	*environment
	actors.Simple
	volume string
}

// Rest: what a crash has left half done stays as it is until the kubelet stages or unstages the volume.
func (s *subject) Rest() *actors.Operation { return nil }

// Plan returns the operation that a request asks for.
func (s *subject) Plan(m messages.Request) *actors.Operation {
	switch m := m.(type) {
	case *messages.StageVolume:
		same := func(o *messages.StageVolume) bool { return sameStaging(o.Staging, m.Staging) }
		return order(s, "stage", m, same, func(ctx context.Context, t *task) (struct{}, error) { return struct{}{}, t.stage(ctx, m.Staging) })
	case *messages.UnstageVolume:
		same := func(o *messages.UnstageVolume) bool { return o.Path == m.Path }
		return order(s, "unstage", m, same, func(ctx context.Context, t *task) (struct{}, error) { return struct{}{}, t.unstage(ctx, m.Path) })
	case *messages.ClearDetached:
		same := func(*messages.ClearDetached) bool { return true }
		return order(s, "clear", m, same, func(ctx context.Context, t *task) (struct{}, error) { return struct{}{}, t.clearDetached(ctx) })
	case *messages.PublishStaged:
		same := func(o *messages.PublishStaged) bool { return samePublication(o.Publication, m.Publication) }
		return inTurn(order(s, "publish", m, same, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.publish(ctx, m.Publication)
		}))
	case *messages.UnpublishStaged:
		same := func(o *messages.UnpublishStaged) bool { return o.Target == m.Target }
		return inTurn(order(s, "unpublish", m, same, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.unpublish(ctx, m.Target)
		}))
	case *messages.ExpandStaged:
		same := func(o *messages.ExpandStaged) bool { return o.Expansion == m.Expansion }
		return inTurn(order(s, "expand", m, same, func(ctx context.Context, t *task) (int64, error) { return t.expand(ctx, m.Expansion) }))
	case *messages.StagedStats:
		same := func(o *messages.StagedStats) bool { return o.Path == m.Path }
		return inTurn(order(s, "stats", m, same, func(ctx context.Context, t *task) (volume.Stats, error) { return t.stats(ctx, m.Path) }))
	}
	return nil
}

// inTurn lets requests of other pods wait for their turn: the kubelet starts and ends several pods that share a
// volume at the same time, and waits half a second or more after an error. What is staged or unstaged waits for
// no one: the kubelet does that before and after.
func inTurn(op *actors.Operation) *actors.Operation {
	op.Behind = func(m messages.Request) bool {
		switch m.(type) {
		case *messages.PublishStaged, *messages.UnpublishStaged, *messages.ExpandStaged, *messages.StagedStats:
			return true
		}
		return false
	}
	return op
}

// order makes an operation of a request. same compares it with another request of its type.
func order[M interface {
	messages.Request
	Send(R, error)
}, R any](s *subject, name string, m M, same func(M) bool, run func(context.Context, *task) (R, error)) *actors.Operation {
	t := &task{environment: s.environment, volume: s.volume}
	op := actors.Order(name, m, same, func(ctx context.Context) (R, error, error) {
		value, err := run(ctx, t)
		return value, nil, err
	})
	op.Progress = &t.progress
	return op
}

func sameStaging(a, b pools.Staging) bool {
	options := slices.Equal(a.Options, b.Options)
	return options && a.Volume == b.Volume && a.Path == b.Path && a.Block == b.Block && a.FSType == b.FSType && a.ReadOnly == b.ReadOnly &&
		a.Attachment == b.Attachment
}

func samePublication(a, b pools.NodePublication) bool {
	options := slices.Equal(a.Options, b.Options)
	return options && a.Volume == b.Volume && a.Staging == b.Staging && a.Target == b.Target && a.Block == b.Block &&
		a.ReadOnly == b.ReadOnly && a.OneTarget == b.OneTarget
}

// task is one operation: sequential code in a goroutine of its own.
type task struct {
	*environment
	volume   string
	progress actors.Progress
}
