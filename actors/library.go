package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// keyActor is the key of an actor's name in log lines.
const keyActor = "actor"

// AtOnce lets an actor take a message in the goroutine that sends it, unless another goroutine is
// at it and takes this message as well. Starting a goroutine, and often waking a thread for it,
// costs more than these actors' work on a message. It is for actors whose senders can wait that
// long: they hold no lock meanwhile, and Receive never blocks.
var AtOnce = actor.WithDispatcher(actor.NewSynchronizedDispatcher(throughput))

// throughput is the number of messages in a row after which the goroutine lets others run.
const throughput = 300

// Ask sends a question and waits for the answer. It blocks, so no Receive may call it.
func Ask[R any](ctx context.Context, root *actor.RootContext, to *actor.PID, question messages.Question[R]) (R, error) {
	question.Prepare()
	root.Send(to, question)
	return question.Wait(ctx)
}

// IgnoreLifecycle is the default of every Receive: the library's own messages need no action, and
// any other message is a mistake in the program.
func IgnoreLifecycle(log logr.Logger, c actor.Context) {
	switch m := c.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
	default:
		log.Error(nil, "message not understood", keyActor, c.Self().Id, "message", fmt.Sprintf("%T", m))
	}
}

// StopTimer stops a timer, if there is one. A tick that is already under way does no harm.
func StopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// Recovering answers the caller of a request at which the actor panics, and lets the supervisor
// decide. The library itself loses the message, lets the caller wait for its deadline, and logs no
// stack.
func Recovering(log logr.Logger) actor.ReceiverMiddleware {
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

// Counting counts the supervisor's messages to an actor, also those at which it panics: it would never be at rest again.
func Counting(received *uint64) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if _, ok := envelope.Message.(messages.ToVolume); ok {
				*received++
			}
			next(c, envelope)
		}
	}
}

// Guard runs an operation in a worker and turns a panic into an error, which would end the process
// otherwise.
func Guard(log logr.Logger, operation func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Error(fmt.Errorf("panic: %v", reason), "operation failed", "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: internal error: %v", volume.ErrUncertain, reason)
		}
	}()
	return operation()
}

// librarySlog is the actor library's log in our own sink. The library logs at Info what belongs to
// Debug (each start, each dead letter).
func librarySlog(log logr.Logger) *slog.Logger {
	return slog.New(demoting{logr.ToSlogHandler(log.WithName("protoactor"))})
}

// demoting handles Info records as what logr calls V(1), our debug level. slog's own Debug is V(4),
// which our debug level does not show.
type demoting struct{ slog.Handler }

func demote(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelInfo - 1
	}
	return level
}

func (d demoting) Enabled(ctx context.Context, level slog.Level) bool {
	return d.Handler.Enabled(ctx, demote(level))
}

func (d demoting) Handle(ctx context.Context, record slog.Record) error {
	record.Level = demote(record.Level)
	return d.Handler.Handle(ctx, record)
}

func (d demoting) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demoting{d.Handler.WithAttrs(attrs)}
}

func (d demoting) WithGroup(name string) slog.Handler {
	return demoting{d.Handler.WithGroup(name)}
}
