package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
)

// ignoreLifecycle is the default of every Receive: the library's own messages
// need no action, and any other one is a mistake in the program.
func ignoreLifecycle(log logr.Logger, c actor.Context) {
	switch m := c.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
	default:
		log.Error(nil, "message not understood", keyActor, c.Self().Id, "message", fmt.Sprintf("%T", m))
	}
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop() // a tick that is already under way is harmless
	}
}
