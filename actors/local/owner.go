package local

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	localmessages "github.com/katbox/katbox/messages/local"
)

// longestOperation bounds an operation: longer than the copy of a large volume takes.
const longestOperation = 24 * time.Hour

// environment is what all operations and actors work with. It does not change.
type environment struct {
	*actors.System
	Config
	// ctx ends when the process stops.
	ctx      context.Context
	keeper   *actor.PID
	subjects actors.Subjects
	// dirs are the directories that are open.
	dirs sync.WaitGroup
}

func newEnvironment(ctx context.Context, system *actors.System, cfg Config) *environment {
	e := &environment{System: system, Config: cfg, ctx: ctx, keeper: system.Single(keeperName)}
	e.subjects = actors.Subjects{
		System: system, Context: ctx, Longest: longestOperation, Patience: cfg.Patience,
		Impatient: volume.ErrBusy, Ended: cfg.Metrics.LocalOperation,
	}
	return e
}

// use asks for a pool's directory. A caller that has left waits for the answer all the same: the directory has to be
// given back. The keeper answers at once.
func (e *environment) use(ctx context.Context, m *localmessages.UseLocal) (localmessages.UsableLocal, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Patience)
	defer cancel()
	return actors.Ask(ctx, e.Root, e.keeper, m)
}

// owner is the supervisor's [actors.Kind]. It keeps nothing of volumes at rest: their records are on disk.
type owner struct {
	*environment
	supervisor *actors.Supervisor
}

// Start spawns the keeper.
func (o *owner) Start(s *actors.Supervisor) {
	o.supervisor = s
	s.Spawn(keeperName, keeperProps(o.environment))
}

// Stop has nothing to stop.
func (o *owner) Stop() {}

// Asked passes all on.
func (o *owner) Asked(messages.Request) bool { return false }

// Wake has nothing to hand over.
func (o *owner) Wake(messages.Request) any { return nil }

// Props describes the actor of a volume or a snapshot. state is the pool in which something was left unfinished.
func (o *owner) Props(id volume.ID, state any) *actor.Props {
	kind, name := messages.SplitKey(id)
	s := &subject{environment: o.environment, kind: kind, volume: name}
	s.unfinished, _ = state.(string)
	return o.subjects.Props(id, s.text(), s)
}

// Idle has nothing to note.
func (o *owner) Idle(volume.ID, any, bool) {}

// Sleep has nothing to keep.
func (o *owner) Sleep(volume.ID, any) {}

// Receive handles what is for the owner.
func (o *owner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *localmessages.LocalUnfinished:
		o.finish(m.Pool, kindVolume, m.Volumes)
		o.finish(m.Pool, kindSnapshot, m.Snapshots)
	default:
		actors.IgnoreLifecycle(o.Log, c)
	}
}

// finish wakes what is to be finished. What has an actor is told to go on by its own means.
func (o *owner) finish(pool, kind string, names []string) {
	for _, name := range names {
		if id := messages.KeyOf(kind, name); !o.supervisor.IsAwake(id) {
			o.supervisor.Wake(id, pool, &messages.Resume{})
		}
	}
}
