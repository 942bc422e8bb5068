package messages

import "context"

// Question is a message that is answered with an R. A pointer to a message that embeds Reply[R] is
// one.
type Question[R any] interface {
	// Prepare makes the slot for the answer. The asker calls it before it sends the question.
	Prepare()
	// Wait returns the answer.
	Wait(ctx context.Context) (R, error)
}

// Reply is the slot for the answer to a question. It takes one answer and drops a second one; an
// answer that no one waits for any more does no harm.
//
// It replaces the actor library's futures, which know no context, allow one waiter only, and race
// with a late answer.
type Reply[R any] struct{ answer chan result[R] }

type result[R any] struct {
	value R
	err   error
}

// Prepare makes the slot.
func (r *Reply[R]) Prepare() { r.answer = make(chan result[R], 1) }

// Send answers the question.
func (r Reply[R]) Send(value R, err error) {
	select {
	case r.answer <- result[R]{value, err}:
	default:
	}
}

// Fail answers the question with an error.
func (r Reply[R]) Fail(err error) {
	var zero R
	r.Send(zero, err)
}

// Wait returns the answer, or the context's error when that ends first. The question is carried out
// all the same.
func (r Reply[R]) Wait(ctx context.Context) (R, error) {
	select {
	case got := <-r.answer:
		return got.value, got.err
	case <-ctx.Done():
		var zero R
		return zero, ctx.Err()
	}
}

// Failer is a question that any receiver can refuse, whatever it asks for.
type Failer interface{ Fail(err error) }
