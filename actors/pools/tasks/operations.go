package tasks

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Plan returns the operation that a request asks for; nil for one that is none of this kind.
func (s *subject) Plan(m messages.Request) *actors.Operation {
	switch m := m.(type) {
	case *poolmessages.CreateVolume:
		same := func(o *poolmessages.CreateVolume) bool { return sameVolume(o.New, m.New) }
		return order(s, "create", m, same, func(ctx context.Context, t *task) (pools.Volume, error) { return t.createVolume(ctx, m.New) })
	case *poolmessages.RemoveVolume:
		return order(s, "delete", m, always, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.removeVolume(ctx)
		})
	case *poolmessages.EndRetained:
		return order(s, "end-retained", m, always, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.endRetained(ctx, m)
		})
	case *poolmessages.RestoreVolume:
		same := func(o *poolmessages.RestoreVolume) bool { return sameVolume(o.New, m.New) && o.For == m.For }
		return order(s, "restore", m, same, func(ctx context.Context, t *task) (pools.Volume, error) { return t.giveBack(ctx, m) })
	case *poolmessages.GrowVolume:
		same := func(o *poolmessages.GrowVolume) bool { return o.Required == m.Required && o.Limit == m.Limit }
		return order(s, "grow", m, same, func(ctx context.Context, t *task) (pools.Volume, error) {
			return t.growVolume(ctx, m.Required, m.Limit)
		})
	case *poolmessages.AttachVolume:
		same := func(o *poolmessages.AttachVolume) bool { return o.New == m.New }
		return order(s, "attach", m, same, func(ctx context.Context, t *task) (pools.Attachment, error) { return t.attach(ctx, m.New) })
	case *poolmessages.DetachVolume:
		return order(s, "detach", m, always, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.detach(ctx, m.Volume, m.Node)
		})
	case *poolmessages.TakeSnapshot:
		same := func(o *poolmessages.TakeSnapshot) bool { return o.Volume == m.Volume }
		return order(s, "snapshot", m, same, func(ctx context.Context, t *task) (pools.Snapshot, error) {
			return t.takeSnapshot(ctx, m.Name, m.Volume)
		})
	case *poolmessages.RemoveSnapshot:
		return order(s, "delete-snapshot", m, always, func(ctx context.Context, t *task) (struct{}, error) {
			return struct{}{}, t.removeSnapshot(ctx)
		})
	}
	return nil
}

// always: two requests of the type, for one resource, ask for the same thing.
func always[M any](M) bool { return true }

// Rest returns the operation that makes true what the resource says: an earlier one was interrupted, or
// a person has deleted the resource.
func (s *subject) Rest() *actors.Operation {
	finish := map[string]func(*task, context.Context) error{
		rules.KindVolume: (*task).finishVolume, rules.KindSnapshot: (*task).finishSnapshot, rules.KindAttachment: (*task).finishAttachment,
		rules.KindNode: (*task).finishNode, rules.KindDisk: (*task).finishDisk, rules.KindLabels: (*task).finishLabels,
	}[s.kind]
	if finish == nil {
		return nil
	}
	return &actors.Operation{Name: "resume", Run: func(ctx context.Context) actors.Outcome {
		t := s.task()
		err := finish(t, ctx)
		if t.unfinished == nil {
			t.unfinished = err
		}
		return actors.Outcome{Err: err, Unfinished: t.unfinished}
	}}
}
