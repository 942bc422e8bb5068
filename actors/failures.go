package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/messages"
)

// failuresInterval is the time between two lines about volumes that cannot be deleted.
// When the disk fails, none can be.
const failuresInterval = time.Minute

// failures logs volumes that cannot be deleted: the first at once, and then in each
// interval one line for all.
type failures struct {
	// more came after the line before; last is the last of them.
	more int
	last *messages.Retain
	// timer is set while the interval goes on.
	timer *time.Timer
}

// failuresDue says that the interval is over.
type failuresDue struct{}

// add notes a volume that could not be deleted for the first time.
func (f *failures) add(c actor.Context, log logr.Logger, m *messages.Retain) {
	if f.timer != nil {
		f.more++
		f.last = m
		return
	}
	log.Error(m.Failed, "a volume cannot be deleted, trying again until it can",
		logkeys.About(m.Record, logkeys.Phase, m.Record.Phase.String())...)
	root, self := c.ActorSystem().Root, c.Self()
	f.timer = time.AfterFunc(failuresInterval, func() { root.Send(self, &failuresDue{}) })
}

// due ends the interval.
func (f *failures) due(log logr.Logger) {
	if f.more > 0 {
		log.Error(f.last.Failed, "more volumes cannot be deleted, trying again until they can; this is one of them",
			logkeys.About(f.last.Record, "volumes", f.more, logkeys.Phase, f.last.Record.Phase.String())...)
	}
	*f = failures{}
}
