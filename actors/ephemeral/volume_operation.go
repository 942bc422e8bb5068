package ephemeral

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// publishing is the name of an operation that publishes.
const publishing = "publish"

// operation is one change of a volume.
type operation struct {
	// name is for traces.
	name string
	// origin is the call that asked for it first; nil when that is not traced.
	origin *messages.Origin
	run    func(*task) error
	// covers reports whether a request asks for what this operation does anyway; nil when none does.
	covers func(messages.Request) bool
	// waiting get the outcome.
	waiting []messages.Reply[struct{}]
	// deletes: it is a deletion, which takes a moment; then there is nothing left to unmount. An
	// unpublish that meets it waits.
	deletes bool
	// brief: it writes one record, and nothing that a request asks for contradicts it. All requests
	// that meet it wait, except questions: what they are about stays the same.
	brief bool
	// beside: an operation of another volume waits for it.
	beside bool
	// ended delivers the outcome. It is not in the message that announces it, because a message at
	// which the actor panics is lost.
	ended   chan *outcome
	outcome *outcome
}

// outcome is what an operation made of its volume.
type outcome struct {
	task *task
	err  error
}

// finished announces that the running operation, or a measurement beside it, has ended.
type finished struct{}

// start runs an operation in a goroutine of its own, on a copy of what is known.
func (v *volumeActor) start(c actor.Context, op *operation) {
	op.ended = make(chan *outcome, 1)
	t := &task{environment: v.environment, id: v.id, record: v.record, recorded: v.recorded, size: v.size, deletion: v.deletion,
		doubted: v.doubted}
	root, self := c.ActorSystem().Root, c.Self()
	run := v.Workers.Go
	if op.beside {
		run = v.Workers.Beside
	}
	err := run(func() {
		err := actors.Guard(v.Log, func() error { return t.traced(op) })
		op.ended <- &outcome{task: t, err: err}
		root.Send(self, &finished{})
	})
	if err != nil {
		v.tell(c)
		for _, waiting := range op.waiting {
			waiting.Fail(err)
		}
		v.stillStuck(c, err)
		return
	}
	v.running = op
}

// tell tells the owner of all volumes what is known of this one, before a caller hears of it.
func (v *volumeActor) tell(c actor.Context) {
	c.Send(c.Parent(), &messages.VolumeIs{ID: v.id, Record: v.record, After: v.publish})
}

// finish takes over what an operation left, and answers the callers that wait for it. A restarted
// actor calls it too, because the message that announced it may be lost.
func (v *volumeActor) finish(c actor.Context) {
	op := v.running
	if op == nil {
		return
	}
	if op.outcome == nil {
		select {
		case op.outcome = <-op.ended:
		default:
			return
		}
	}
	t, err := op.outcome.task, op.outcome.err
	before, stuck := v.record, t.stuck
	if op.deletes {
		stuck = err // a deletion that panicked is tried again too
	}
	v.record, v.recorded = t.record, t.recorded
	v.doubt(t.doubted && t.record != nil && t.record.Phase.Live())
	if t.record == nil || t.record.Phase.Live() {
		v.size = volume.Size{}
	}
	if t.record == nil || t.record.Phase.Live() || t.unmounted && t.record.Phase == volume.Retained {
		v.deletionOrdered, v.deletionFailed, v.deletionTries = false, nil, 0
	}
	v.tell(c)
	for _, waiting := range op.waiting {
		waiting.Send(struct{}{}, err)
	}
	if errors.Is(err, volume.ErrNoSpace) && !op.deletes && !op.brief {
		c.Send(v.diskActor, &messages.NoSpace{})
	}
	v.running = nil
	switch {
	case stuck != nil:
		v.stillStuck(c, stuck)
	case err == nil:
		v.stuck, v.failures = nil, 0
	case len(op.waiting) == 0:
		v.Log.Error(err, "operation failed", logkeys.About(v.known())...)
	}
	if v.resumeLater && stuck == nil {
		v.resume(c)
	}
	v.resumeLater = false
	deferred := v.deferred
	v.deferred = nil
	for _, m := range deferred {
		v.request(c, m)
	}
	if op.name == publishing && err == nil {
		v.tellPublished(before)
	}
}

// rewrite records something of a retained volume that leaves all else of it as it is.
func (v *volumeActor) rewrite(c actor.Context, name string, m messages.Request, reply messages.Reply[struct{}], run func(*task) error) {
	v.start(c, rewriting(name, m, reply, run))
}

// rewriting is the operation of [volumeActor.rewrite].
func rewriting(name string, m messages.Request, reply messages.Reply[struct{}], run func(*task) error) *operation {
	return &operation{name: name, origin: m.Route().Origin, run: run, brief: true, waiting: []messages.Reply[struct{}]{reply}}
}
