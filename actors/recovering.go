package actors

import (
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// recovering answers the caller of a request at which the actor panics, and
// lets the supervisor decide. The library itself loses the message and lets
// the caller wait for its deadline; it logs no stack either.
func recovering(log logr.Logger) actor.ReceiverMiddleware {
	return recoveringWith(log, func(reason any) { panic(reason) })
}

// recoveringWith does the same, and then calls failed.
func recoveringWith(log logr.Logger, failed func(reason any)) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			defer func() {
				reason := recover()
				if reason == nil {
					return
				}
				log.Error(fmt.Errorf("panic: %v", reason), "actor failed",
					keyActor, c.Self().Id, "message", fmt.Sprintf("%T", envelope.Message), "stack", string(debug.Stack()))
				if request, ok := envelope.Message.(messages.Failer); ok {
					request.Fail(fmt.Errorf("%w: internal error: %v", volume.ErrUncertain, reason))
				}
				switch envelope.Message.(type) {
				case *actor.Stopping, *actor.Stopped:
					// A panic here would leave a zombie that its parent waits for.
				default:
					failed(reason)
				}
			}()
			next(c, envelope)
		}
	}
}

// guard runs an operation in a worker and turns a panic into an error: nobody
// but the process itself would see it otherwise.
func guard(log logr.Logger, operation func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Error(fmt.Errorf("panic: %v", reason), "operation failed", "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: internal error: %v", volume.ErrUncertain, reason)
		}
	}()
	return operation()
}
