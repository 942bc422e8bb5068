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
	t := s.task()
	op := t.plan(m)
	if op != nil {
		op.Then = func(e *actors.Outcome) {
			if t.unfinished != nil {
				e.Unfinished = t.unfinished
			}
		}
	}
	return op
}

func (t *task) plan(m messages.Request) *actors.Operation {
	switch m := m.(type) {
	case *poolmessages.CreateVolume:
		same := func(o *poolmessages.CreateVolume) bool { return sameVolume(o.New, m.New) }
		return actors.Order("create", m, same, func(ctx context.Context) (pools.Volume, error) { return t.createVolume(ctx, m.New) })
	case *poolmessages.RemoveVolume:
		return actors.Change("delete", m, actors.Always, t.removeVolume)
	case *poolmessages.EndRetained:
		return actors.Change("end-retained", m, actors.Always, func(ctx context.Context) error { return t.endRetained(ctx, m) })
	case *poolmessages.RestoreVolume:
		same := func(o *poolmessages.RestoreVolume) bool { return sameVolume(o.New, m.New) && o.For == m.For }
		return actors.Order("restore", m, same, func(ctx context.Context) (pools.Volume, error) { return t.giveBack(ctx, m) })
	case *poolmessages.GrowVolume:
		same := func(o *poolmessages.GrowVolume) bool { return o.Required == m.Required && o.Limit == m.Limit }
		return actors.Order("grow", m, same, func(ctx context.Context) (pools.Volume, error) {
			return t.growVolume(ctx, m.Required, m.Limit)
		})
	case *poolmessages.AttachVolume:
		same := func(o *poolmessages.AttachVolume) bool { return o.New == m.New }
		return actors.Order("attach", m, same, func(ctx context.Context) (pools.Attachment, error) { return t.attach(ctx, m.New) })
	case *poolmessages.DetachVolume:
		return actors.Change("detach", m, actors.Always, func(ctx context.Context) error { return t.detach(ctx, m.Volume, m.Node) })
	case *poolmessages.TakeSnapshot:
		same := func(o *poolmessages.TakeSnapshot) bool { return o.Volume == m.Volume }
		return actors.Order("snapshot", m, same, func(ctx context.Context) (pools.Snapshot, error) {
			return t.takeSnapshot(ctx, m.Name, m.Volume)
		})
	case *poolmessages.RemoveSnapshot:
		return actors.Change("delete-snapshot", m, actors.Always, t.removeSnapshot)
	}
	return nil
}

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
