package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Subjects is what all actors of a kind have in common that change one thing each; see [Subjects.Props].
type Subjects struct {
	System *System
	// Context ends when the process stops: operations give up then.
	Context context.Context
	// Longest bounds an operation; 0 sets no limit. What has not come by then may never come, and others have to
	// have their turn.
	Longest time.Duration
	// Patience is how long a caller waits for an operation that goes on; 0 sets no limit.
	Patience time.Duration
	// Impatient is the kind of error that such a caller gets; nil means [volume.ErrUnavailable].
	Impatient error
	// Aside, where it is set, reports whether a request is none of a kubelet's. Few of those wait for their turn, so
	// that they take no place of calls.
	Aside func(messages.Request) bool
	// Ended, where it is set: an operation has ended.
	Ended func(operation string, took time.Duration, err error)
	// Late, where it is set: a subject has an operation since then that callers do not wait for any
	// more; the zero time says that it has ended.
	Late func(id volume.ID, since time.Time)
}

const (
	// MaxCallers bounds the callers that wait for an operation, and those that wait for their turn: more than the pods
	// that a kubelet runs, some 250.
	MaxCallers = 256
	// MaxAsides bounds the waiting requests at which another one that is an aside still waits.
	MaxAsides = 8
)

// subject is such an actor. One operation runs at a time; a request that meets it shares its outcome when it
// asks for the same thing; else it waits for its turn or is answered that the subject is busy.
//
// A restart keeps the instance: the operation that is under way goes on through it. Only Receive uses the
// fields, so it needs no lock.
type subject struct {
	*Subjects
	Changing
	id volume.ID
	// name is for errors, such as volume pvc-1.
	name string
	// running is the operation under way; nil when there is none.
	running *running
	// later wait for their turn.
	later callers
	// resumeLater: an order to go on met a running operation.
	resumeLater bool
	// answers are due to callers of the operation that has ended.
	answers []func()
	// failures counts the operations in a row that left something to do.
	failures int
	// received counts the supervisor's messages.
	received uint64
	patience patience
}

// running is an operation under way.
type running struct {
	*Operation
	// waiting get the outcome; none when no call has asked for it.
	waiting callers
	began   time.Time
	// outcome is not in the message that announces it, because a message at which the actor panics is lost.
	outcome Pending[Outcome]
	// late: callers do not wait for it any more.
	late bool
}

// operationEnded announces that the running operation has ended.
type operationEnded struct{}

// Props describes the actor of a subject. name is for errors, such as "volume pvc-1". The actor ends when it
// has nothing to do.
func (s *Subjects) Props(id volume.ID, name string, changing Changing, more ...actor.ReceiverMiddleware) *actor.Props {
	a := &subject{Subjects: s, Changing: changing, id: id, name: name}
	middleware := append([]actor.ReceiverMiddleware{Recovering(s.System.log), Counting(&a.received)}, more...)
	return actor.PropsFromFunc(a.Receive, actor.WithReceiverMiddleware(middleware...), AtOnce)
}

func (s *subject) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case messages.Request:
		s.request(c, waiting{m, time.Now()})
	case *messages.Resume:
		s.resume(c)
	case messages.ToVolume:
		s.order(c, m)
	case *actor.Started, *operationEnded:
		s.finish(c)
	case *patienceOver:
		s.impatient(c)
	case *actor.Stopping:
		s.refuseWaiting()
		return
	default:
		IgnoreLifecycle(s.System.log, c)
		return
	}
	if s.running == nil && s.received > 0 && s.failures == 0 && !s.Stays() {
		c.Send(c.Parent(), &messages.AtRest{ID: s.id, Actor: c.Self().Id, Received: s.received, State: s.Left()})
	}
	// The supervisor hears first that the operation has ended: what its callers ask next may depend on that.
	for _, answer := range s.answers {
		answer()
	}
	s.answers = nil
}

// request starts the operation that a request asks for, or answers it at once.
func (s *subject) request(c actor.Context, m waiting) {
	op, gone := s.running, m.Route().Expired()
	same := op.isSame(m.Request)
	switch {
	case !gone && !same && op.hasBehind(m.Request) && s.later.add(m, s.room(m.Request)):
		s.Take(m.Request)
	case s.Asked(m.Request, op.operation()):
		return
	case gone:
		m.Fail(context.DeadlineExceeded)
		return
	case same && op.waiting.add(m, MaxCallers):
		s.Take(m.Request)
	case same || op.hasBehind(m.Request):
		m.Fail(fmt.Errorf("%w: %s: too many calls wait while %s is under way; try again", volume.ErrBusy, s.name, op.Name))
		return
	case op != nil:
		m.Fail(fmt.Errorf("%w: %s: %s is under way; try again", volume.ErrBusy, s.name, op.Name))
		return
	default:
		s.Take(m.Request)
		op := s.Plan(m.Request)
		if op == nil {
			// The one answer to a request counts, which Plan may have given.
			m.Fail(fmt.Errorf("%s is asked %T, which it does not know", s.name, m.Request))
			return
		}
		s.start(c, op, m)
	}
	s.waitPatiently(c)
}

// room is at how many waiting requests another one still waits for its turn.
func (s *subject) room(m messages.Request) int {
	if s.Aside != nil && s.Aside(m) {
		return MaxAsides
	}
	return MaxCallers
}

func (r *running) operation() *Operation {
	if r == nil {
		return nil
	}
	return r.Operation
}

func (r *running) isSame(m messages.Request) bool { return r != nil && r.Same != nil && r.Same(m) }

func (r *running) hasBehind(m messages.Request) bool {
	return r != nil && r.Behind != nil && r.Behind(m)
}

// order begins what an order asks for. One that meets an operation is dropped: it is given to a subject at rest, or
// again.
func (s *subject) order(c actor.Context, m messages.ToVolume) {
	if s.running != nil {
		return
	}
	op, known := s.Order(m)
	if !known {
		IgnoreLifecycle(s.System.log, c)
	}
	if op != nil {
		s.start(c, op)
	}
}

// resume goes on with what is left.
func (s *subject) resume(c actor.Context) {
	if s.running != nil {
		s.resumeLater = true
		return
	}
	op := s.Rest()
	if op == nil {
		s.failures = 0
		return
	}
	s.start(c, op)
}

// start runs an operation in a goroutine of its own.
func (s *subject) start(c actor.Context, o *Operation, first ...waiting) {
	op, run := &running{Operation: o, waiting: first, began: time.Now()}, s.System.Workers.Go
	if o.Beside {
		run = s.System.Workers.Beside
	}
	if err := op.outcome.begin(s.System, run, c.Self(), &operationEnded{}, func() (Outcome, error) { return s.run(o), nil }); err != nil {
		s.end(c, op, Outcome{Err: err, Unfinished: err, NotBegun: true})
		return
	}
	s.running = op
}

func (s *subject) run(o *Operation) Outcome {
	ctx := s.Context
	if s.Longest > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Longest)
		defer cancel()
	}
	return o.Run(ctx)
}

// finish takes over what has come of an operation that has ended. A restarted actor calls it too, because the
// message that announced the end may be lost.
func (s *subject) finish(c actor.Context) {
	op := s.running
	if op == nil {
		return
	}
	found, ok := op.outcome.Take()
	if !ok {
		return
	}
	e := found.Value
	if found.Err != nil { // it has panicked, and something may be left to do
		e = Outcome{Err: found.Err, Unfinished: found.Err}
	}
	s.running = nil
	s.end(c, op, e)
	s.next(c)
}

// end sees to the answers to the callers of an operation, and to what is left to do.
func (s *subject) end(c actor.Context, op *running, e Outcome) {
	for _, m := range op.waiting {
		if e.Answer != nil {
			s.answers = append(s.answers, func() { e.Answer(m.Request) })
		} else {
			s.answers = append(s.answers, func() { m.Fail(e.Err) }) // nil is an answer, too
		}
	}
	if op.Then != nil {
		op.Then(&e)
	}
	if op.Answered != nil {
		s.answers = append(s.answers, op.Answered)
	}
	if op.late {
		s.Late(s.id, time.Time{})
	}
	if s.Ended != nil && !e.NotBegun {
		s.Ended(op.Name, time.Since(op.began), e.Err)
	}
	// Where the process stops, what could not begin waits for its end: an actor at rest might be woken for it again and again.
	if stops := errors.Is(s.Context.Err(), context.Canceled); e.Unfinished != nil && (e.NotBegun || !stops) {
		s.goOnLater(c, e.Unfinished)
	} else {
		s.failures = 0
	}
}

// next begins what waits for its turn.
func (s *subject) next(c actor.Context) {
	later := s.later
	s.later = nil
	s.patience.stop()
	for _, m := range later {
		s.request(c, m)
	}
	if s.resumeLater && s.running == nil {
		s.resumeLater = false
		s.resume(c)
	}
}

// goOnLater asks the supervisor for an order to go on after a while.
func (s *subject) goOnLater(c actor.Context, why error) {
	s.failures++
	s.resumeLater = false
	s.System.log.V(1).Info("goes on later", "subject", string(s.id), "failures", s.failures, "reason", volume.OneLine(why))
	c.Send(c.Parent(), &messages.Stuck{ID: s.id, Actor: c.Self().Id, Attempt: s.failures})
}

// refuseWaiting answers the callers that wait for an operation whose end this actor will not see.
func (s *subject) refuseWaiting() {
	s.patience.stop()
	if s.running != nil {
		s.running.waiting.fail(ErrStopping)
	}
	s.later.fail(ErrStopping)
}
