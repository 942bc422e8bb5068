package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Subjects is what all actors of a kind have in common that change one thing each; see [Subjects.Props].
type Subjects struct {
	Log     logr.Logger
	Workers *Workers
	// Context ends when the process stops: operations give up then.
	Context context.Context
	// Longest bounds an operation. What has not come by then may never come, and others have to have
	// their turn.
	Longest time.Duration
	// Patience is how long a caller waits for an operation that goes on; 0 sets no limit.
	Patience time.Duration
	// Impatient is the kind of error that such a caller gets; nil means [volume.ErrUnavailable].
	Impatient error
	// Ended: an operation has ended.
	Ended func(operation string, took time.Duration, err error)
	// Late, where it is set: a subject has an operation since then that callers do not wait for any
	// more; the zero time says that it has ended.
	Late func(id volume.ID, since time.Time)
}

// Changing is what the actor of a subject does. Its methods are called in the actor's turn.
type Changing interface {
	// Plan returns the operation that a request asks for; nil for one that it does not know.
	Plan(m messages.Request) *Operation
	// Rest returns the operation that goes on with what an earlier one has left; nil where nothing is left.
	Rest() *Operation
}

// Staying is Changing for a subject whose actor has more to keep than an operation.
type Staying interface {
	// Take is called with each request that is not refused, before others for which it waits.
	Take(m messages.Request)
	// Stays reports whether the actor has to go on without an operation.
	Stays() bool
}

// Operation is one change of a subject.
type Operation struct {
	// Name is for metrics and errors.
	Name string
	// Run does it, in a goroutine of its own.
	Run func(context.Context) Outcome
	// Same reports whether a request asks for what this operation does anyway; nil: none does.
	Same func(messages.Request) bool
	// Behind reports whether another request waits for its turn; the others are refused. nil: none waits.
	Behind func(messages.Request) bool
	// Progress, where it is set, says what the operation waits for.
	Progress *Progress
	// Then, where it is set, is called in the actor's turn with the operation's error.
	Then func(error)
}

// Outcome is what an operation has come to.
type Outcome struct {
	// Answer answers a request; nil: it is answered with Err.
	Answer func(messages.Request)
	Err    error
	// Unfinished is why the operation has to go on later; nil when it has not.
	Unfinished error
}

// Order returns the operation that carries out a request which is answered with an R. same compares it with
// another request of its type. unfinished is why the operation has to go on later; nil when it has not.
func Order[M interface {
	messages.Request
	Send(R, error)
}, R any](name string, m M, same func(M) bool, run func(context.Context) (value R, unfinished, err error)) *Operation {
	return &Operation{
		Name: name,
		Same: func(other messages.Request) bool {
			o, ok := other.(M)
			return ok && same(o)
		},
		Run: func(ctx context.Context) Outcome {
			value, unfinished, err := run(ctx)
			return Outcome{Answer: func(caller messages.Request) { caller.(M).Send(value, err) }, Err: err, Unfinished: unfinished}
		},
	}
}

// Resting is the state of a subject's actor that has nothing to do: how many messages it had received.
type Resting uint64

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
	// later are requests that wait for their turn.
	later []waiting
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
	waiting []waiting
	began   time.Time
	// ended delivers the outcome. It is not in the message that announces it, because a message at
	// which the actor panics is lost.
	ended chan Outcome
	// late: callers do not wait for it any more.
	late bool
}

// waiting is a request and when it came.
type waiting struct {
	messages.Request
	asked time.Time
}

// operationEnded announces that the running operation has ended.
type operationEnded struct{}

// Props describes the actor of a subject. name is for errors, such as "volume pvc-1". The actor ends when it
// has nothing to do, with [Resting] as its state.
func (s *Subjects) Props(id volume.ID, name string, changing Changing) *actor.Props {
	a := &subject{Subjects: s, Changing: changing, id: id, name: name}
	return actor.PropsFromFunc(a.Receive, actor.WithReceiverMiddleware(Recovering(s.Log), a.counting), AtOnce)
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
		s.request(c, waiting{m, time.Now()})
	case *messages.Resume:
		s.resume(c)
	case *actor.Started, *operationEnded:
		s.finish(c)
	case *patienceOver:
		s.impatient(c)
	case *actor.Stopping:
		s.refuseWaiting()
		return
	default:
		IgnoreLifecycle(s.Log, c)
		return
	}
	if s.running == nil && s.received > 0 && s.failures == 0 && !s.stays() {
		c.Send(c.Parent(), &messages.AtRest{ID: s.id, Actor: c.Self().Id, Received: s.received, State: Resting(s.received)})
	}
	// The supervisor hears first that the operation has ended: what its callers ask next may depend on that.
	for _, answer := range s.answers {
		answer()
	}
	s.answers = nil
}

func (s *subject) stays() bool {
	k, ok := s.Changing.(Staying)
	return ok && k.Stays()
}

// request starts the operation that a request asks for, or answers it at once.
func (s *subject) request(c actor.Context, m waiting) {
	deadline := m.Route().Deadline
	switch {
	case !deadline.IsZero() && !time.Now().Before(deadline):
		m.Fail(context.DeadlineExceeded) // the caller does not wait any more
		return
	case s.running != nil && s.running.Same != nil && s.running.Same(m.Request):
		s.take(m)
		s.running.waiting = append(s.running.waiting, m)
	case s.running != nil && s.running.Behind != nil && s.running.Behind(m.Request):
		s.take(m)
		s.later = append(s.later, m)
	case s.running != nil:
		m.Fail(fmt.Errorf("%w: %s: %s is under way", volume.ErrBusy, s.name, s.running.Name))
		return
	default:
		s.take(m)
		op := s.Plan(m.Request)
		if op == nil {
			m.Fail(fmt.Errorf("%s is asked %T, which it does not know", s.name, m.Request))
			return
		}
		s.start(c, op, m)
	}
	s.waitPatiently(c)
}

func (s *subject) take(m waiting) {
	if k, ok := s.Changing.(Staying); ok {
		k.Take(m.Request)
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
func (s *subject) start(c actor.Context, o *Operation, callers ...waiting) {
	op := &running{Operation: o, waiting: callers, ended: make(chan Outcome, 1), began: time.Now()}
	root, self := c.ActorSystem().Root, c.Self()
	err := s.Workers.Go(func() {
		var e Outcome
		ctx, cancel := context.WithTimeout(s.Context, s.Longest)
		defer cancel()
		if err := Guard(s.Log, func() error { e = op.Run(ctx); return nil }); err != nil {
			e = Outcome{Err: err}
		}
		op.ended <- e
		root.Send(self, &operationEnded{})
	})
	if err != nil {
		for _, m := range callers {
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
	var e Outcome
	select {
	case e = <-op.ended:
	default:
		return
	}
	s.running = nil
	for _, m := range op.waiting {
		if e.Answer != nil {
			s.answers = append(s.answers, func() { e.Answer(m.Request) })
		} else {
			s.answers = append(s.answers, func() { m.Fail(e.Err) }) // it panicked
		}
	}
	if op.Then != nil {
		op.Then(e.Err)
	}
	if op.late {
		s.Late(s.id, time.Time{})
	}
	s.Ended(op.Name, time.Since(op.began), e.Err)
	if e.Unfinished == nil && e.Answer == nil {
		e.Unfinished = e.Err // something may be left to do
	}
	if e.Unfinished != nil && !errors.Is(s.Context.Err(), context.Canceled) {
		s.goOnLater(c, e.Unfinished)
	} else {
		s.failures = 0
	}
	s.next(c)
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
	s.Log.V(1).Info("goes on later", "subject", string(s.id), "failures", s.failures, "reason", volume.OneLine(why))
	c.Send(c.Parent(), &messages.Stuck{ID: s.id, Actor: c.Self().Id, Attempt: s.failures})
}

// refuseWaiting answers the callers that wait for an operation whose end this actor will not see.
func (s *subject) refuseWaiting() {
	s.patience.stop()
	if s.running != nil {
		for _, m := range s.running.waiting {
			m.Fail(ErrStopping)
		}
	}
	for _, m := range s.later {
		m.Fail(ErrStopping)
	}
}
