package messages

import "context"

// Reply is the answer slot of a request. It takes one answer; a second one is
// dropped, and an answer that nobody waits for any more disturbs nobody.
//
// It takes the place of the actor library's futures, which know no context,
// allow only one waiter and race with a late answer.
type Reply[R any] struct{ answer chan result[R] }

type result[R any] struct {
	value R
	err   error
}

// NewReply returns an empty answer slot.
func NewReply[R any]() Reply[R] {
	return Reply[R]{answer: make(chan result[R], 1)}
}

// Send answers the request.
func (r Reply[R]) Send(value R, err error) {
	select {
	case r.answer <- result[R]{value, err}:
	default:
	}
}

// Fail answers the request with an error.
func (r Reply[R]) Fail(err error) {
	var zero R
	r.Send(zero, err)
}

// Wait returns the answer, or the context's error when that ends first. The
// request is carried out all the same.
func (r Reply[R]) Wait(ctx context.Context) (R, error) {
	select {
	case got := <-r.answer:
		return got.value, got.err
	case <-ctx.Done():
		var zero R
		return zero, ctx.Err()
	}
}

// Failer is a request that can be refused by whoever holds it, whatever it asks for.
type Failer interface{ Fail(err error) }
