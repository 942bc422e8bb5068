package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/messages"
)

// ask sends a request and waits for the answer in its reply slot. It blocks, so
// no Receive may call it.
func ask[R any](ctx context.Context, root *actor.RootContext, to *actor.PID, request any, reply messages.Reply[R]) (R, error) {
	root.Send(to, request)
	return reply.Wait(ctx)
}
