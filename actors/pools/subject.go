package pools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// subject is a volume, a snapshot or an attachment that is changing. One operation runs at a time; a
// request that meets it shares its outcome when it asks for the same thing, and is answered that the
// resource is busy when not. The resource is the record: an operation begins by reading it.
//
// A restart keeps the instance: the operation that is under way goes on through it. Only Receive uses
// the fields, so it needs no lock.
type subject struct {
	*environment
	id volume.ID
	// kind and name are those of the ID.
	kind, name string
	// running is the operation under way; nil when there is none.
	running *operation
	// resumeLater: an order to go on met a running operation.
	resumeLater bool
	// answers are due to callers of the operation that has ended.
	answers []func()
	// failures counts the operations in a row that left something to do.
	failures int
	// received counts the supervisor's messages.
	received uint64
}

// operation is one change of a subject.
type operation struct {
	// name is for metrics and errors.
	name string
	// run does it. What it returns answers a request that waits for the outcome.
	run func(context.Context, *task) (answer func(messages.Request), err error)
	// same tells whether a request asks for what this operation does anyway.
	same func(messages.Request) bool
	// waiting get the outcome; none when no call has asked for it.
	waiting []messages.Request
	began   time.Time
	// ended delivers the outcome. It is not in the message that announces it, because a message at
	// which the actor panics is lost.
	ended chan ending
}

// ending is what an operation has come to.
type ending struct {
	answer func(messages.Request)
	err    error
	// unfinished is why the operation has to go on later; nil when it has not.
	unfinished error
}

// longestOperation bounds an operation. It is longer than a few requests that an array takes all its time
// for. What has not come by then may never come, and other operations have to have their turn.
const longestOperation = 10 * time.Minute

// operationEnded announces that the running operation has ended.
type operationEnded struct{}

// task is one operation: sequential code in a goroutine of its own.
type task struct {
	*environment
	// name is the resource's.
	name string
	// unfinished is why the operation has to go on later; nil when it has not.
	unfinished error
}

// question is a request that is answered with an R.
type question[R any] interface {
	comparable
	messages.Request
	Send(R, error)
}

// order makes an operation of a request. same compares it with another request of its type.
func order[M question[R], R any](name string, m M, same func(M) bool, run func(context.Context, *task) (R, error)) *operation {
	return &operation{
		name: name, waiting: []messages.Request{m},
		same: func(other messages.Request) bool {
			o, ok := other.(M)
			return ok && same(o)
		},
		run: func(ctx context.Context, t *task) (func(messages.Request), error) {
			value, err := run(ctx, t)
			return func(waiting messages.Request) { waiting.(M).Send(value, err) }, err
		},
	}
}

func subjectProps(env *environment, id volume.ID) *actor.Props {
	kind, name := split(id)
	s := &subject{environment: env, id: id, kind: kind, name: name}
	return actor.PropsFromFunc(s.Receive, actor.WithReceiverMiddleware(actors.Recovering(env.Log), s.counting), actors.AtOnce)
}

// counting counts the supervisor's messages, also those at which the actor panics: it would never be
// at rest again.
func (s *subject) counting(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		if _, ok := envelope.Message.(messages.ToVolume); ok {
			s.received++
		}
		next(c, envelope)
	}
}

func (s *subject) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case messages.Request:
		s.request(c, m)
	case *messages.Resume:
		s.resume(c)
	case *actor.Started, *operationEnded:
		s.finish(c)
	case *actor.Stopping:
		s.refuseWaiting()
		return
	default:
		actors.IgnoreLifecycle(s.Log, c)
		return
	}
	if s.running == nil && s.received > 0 && s.failures == 0 {
		c.Send(c.Parent(), &messages.AtRest{ID: s.id, Actor: c.Self().Id, Received: s.received, State: resting(s.received)})
	}
	// The supervisor hears first that the operation has ended: what its callers ask next may depend on that.
	for _, answer := range s.answers {
		answer()
	}
	s.answers = nil
}

// resting is how many messages an actor had received when it had nothing to do.
type resting uint64

// request starts the operation that a request asks for, or answers it at once.
func (s *subject) request(c actor.Context, m messages.Request) {
	deadline := m.Route().Deadline
	switch {
	case !deadline.IsZero() && !time.Now().Before(deadline):
		m.Fail(context.DeadlineExceeded) // the caller does not wait any more
	case s.running == nil:
		if op := s.plan(m); op != nil {
			s.start(c, op)
		} else {
			m.Fail(fmt.Errorf("%s %s is asked %T, which it does not know", s.kind, s.name, m))
		}
	case s.running.same != nil && s.running.same(m):
		s.running.waiting = append(s.running.waiting, m)
	default:
		m.Fail(fmt.Errorf("%w: %s %s: %s is under way", volume.ErrBusy, s.kind, s.name, s.running.name))
	}
}

// resume goes on with what the resource says.
func (s *subject) resume(c actor.Context) {
	if s.running != nil {
		s.resumeLater = true
		return
	}
	op := s.rest()
	if op == nil {
		s.failures = 0
		return
	}
	s.start(c, op)
}

// start runs an operation in a goroutine of its own.
func (s *subject) start(c actor.Context, op *operation) {
	op.ended, op.began = make(chan ending, 1), time.Now()
	t := &task{environment: s.environment, name: s.name}
	root, self := c.ActorSystem().Root, c.Self()
	err := s.Workers.Go(func() {
		var e ending
		ctx, cancel := context.WithTimeout(s.ctx, longestOperation)
		defer cancel()
		e.err = actors.Guard(s.Log, func() (err error) {
			e.answer, err = op.run(ctx, t)
			return err
		})
		e.unfinished = t.unfinished
		op.ended <- e
		root.Send(self, &operationEnded{})
	})
	if err != nil {
		for _, m := range op.waiting {
			m.Fail(err)
		}
		s.goOnLater(c, err)
		return
	}
	s.running = op
}

// finish answers the callers that wait for an operation that has ended. A restarted actor calls it too,
// because the message that announced the end may be lost.
func (s *subject) finish(c actor.Context) {
	op := s.running
	if op == nil {
		return
	}
	var e ending
	select {
	case e = <-op.ended:
	default:
		return
	}
	s.running = nil
	for _, m := range op.waiting {
		if e.answer != nil {
			s.answers = append(s.answers, func() { e.answer(m) })
		} else {
			s.answers = append(s.answers, func() { m.Fail(e.err) }) // it panicked
		}
	}
	s.Metrics.OperationEnded(op.name, time.Since(op.began), e.err)
	if e.unfinished == nil && e.answer == nil {
		e.unfinished = e.err // the resource may say that something is left to do
	}
	if e.unfinished != nil && !errors.Is(s.ctx.Err(), context.Canceled) {
		s.goOnLater(c, e.unfinished)
	} else {
		s.failures = 0
	}
	if s.resumeLater {
		s.resumeLater = false
		s.resume(c)
	}
}

// goOnLater has the supervisor send an order to go on after a while.
func (s *subject) goOnLater(c actor.Context, why error) {
	s.failures++
	s.Log.V(1).Info("goes on later", "resource", string(s.id), "failures", s.failures, "reason", volume.OneLine(why))
	c.Send(c.Parent(), &messages.Stuck{ID: s.id, Actor: c.Self().Id, Attempt: s.failures})
}

// refuseWaiting answers the callers that wait for an operation whose end this actor will not see.
func (s *subject) refuseWaiting() {
	if s.running == nil {
		return
	}
	for _, m := range s.running.waiting {
		m.Fail(actors.ErrStopping)
	}
}
