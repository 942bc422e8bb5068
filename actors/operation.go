package actors

import (
	"context"

	"github.com/katbox/katbox/messages"
)

// Changing is what the actor of a subject does. Its methods are called in the actor's turn, so none of them may block.
// [Simple] has those that most subjects do not need.
type Changing interface {
	// Plan returns the operation that a request asks for; nil for one that it has answered, or does not know.
	Plan(m messages.Request) *Operation
	// Rest returns the operation that goes on with what an earlier one has left; nil where nothing is left.
	Rest() *Operation
	// Take is called with each request that is not refused, before others for which it waits.
	Take(m messages.Request)
	// Asked is called with each request that does not wait for its turn. during is the operation under way; nil
	// when there is none. It returns true where it has answered the request.
	Asked(m messages.Request, during *Operation) bool
	// Order returns the operation that carries out a message which is no request; nil where there is nothing to do.
	// known: the subject takes such messages. It is not called while an operation is under way.
	Order(m messages.ToVolume) (op *Operation, known bool)
	// Stays reports whether the actor has to go on without an operation.
	Stays() bool
	// Left is what the kind keeps of the subject when its actor ends; see [Kind.Sleep].
	Left() any
}

// Simple is for a subject that is no more than its operations.
type Simple struct{}

// Take notes nothing.
func (Simple) Take(messages.Request) {}

// Asked answers nothing.
func (Simple) Asked(messages.Request, *Operation) bool { return false }

// Order knows no orders.
func (Simple) Order(messages.ToVolume) (*Operation, bool) { return nil, false }

// Stays reports that the actor may end.
func (Simple) Stays() bool { return false }

// Left is nothing.
func (Simple) Left() any { return nil }

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
	// Beside: the operation of another subject waits for this one; see [Workers.Beside].
	Beside bool
	// Progress, where it is set, says what the operation waits for.
	Progress *Progress
	// Then, where it is set, is called in the actor's turn with what has come of the operation, before its callers
	// are answered. It may change what is unfinished.
	Then func(*Outcome)
	// Answered, where it is set by then, is called after the callers were answered.
	Answered func()
}

// Outcome is what an operation has come to.
type Outcome struct {
	// Answer answers a request; nil: it is answered with Err.
	Answer func(messages.Request)
	Err    error
	// Unfinished is why the operation has to go on later; nil when it has not.
	Unfinished error
	// NotBegun: no worker has taken the operation.
	NotBegun bool
}

// Order returns the operation that carries out a request which is answered with an R. same compares it with
// another request of its type.
func Order[M interface {
	messages.Request
	Send(R, error)
}, R any](name string, m M, same func(M) bool, run func(context.Context) (R, error)) *Operation {
	return &Operation{
		Name: name,
		Same: func(other messages.Request) bool {
			o, ok := other.(M)
			return ok && same(o)
		},
		Run: func(ctx context.Context) Outcome {
			value, err := run(ctx)
			return Outcome{Answer: func(caller messages.Request) { caller.(M).Send(value, err) }, Err: err}
		},
	}
}

// Change is [Order] for a request that is answered with an error alone.
func Change[M interface {
	messages.Request
	Send(struct{}, error)
}](name string, m M, same func(M) bool, run func(context.Context) error) *Operation {
	return Order(name, m, same, func(ctx context.Context) (struct{}, error) { return struct{}{}, run(ctx) })
}

// Always reports that two requests of the type ask for the same thing.
func Always[M any](M) bool { return true }
