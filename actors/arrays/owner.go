package arrays

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/messages"
)

// longestOperation bounds an operation. It is longer than the check of a large file system takes; what waits
// for an array has limits of its own, or none that Katbox could set.
const longestOperation = 6 * time.Hour

// environment is what all operations and actors work with. It does not change.
type environment struct {
	*actors.System
	Config
	// changes are of actors whose callers lose patience; reports are of those without callers.
	changes, reports actors.Subjects
	figures          figures
}

func newEnvironment(ctx context.Context, system *actors.System, cfg Config) *environment {
	e := &environment{System: system, Config: cfg}
	e.figures.metrics, e.figures.late, e.figures.sessions = cfg.Metrics, map[volume.ID]time.Time{}, map[string]bool{}
	e.reports = actors.Subjects{
		System: system, Context: ctx, Longest: longestOperation,
	}
	e.changes = e.reports
	e.changes.Patience, e.changes.Late = cfg.Patience, e.figures.isLate
	return e
}

// owner is the supervisor's [actors.Kind]. It keeps nothing of volumes at rest: their records are on disk.
type owner struct {
	*environment
	supervisor *actors.Supervisor
	// records are those of earlier runs.
	records []staged.Record
	watch   *time.Timer
	// left is what the actor of the leftovers knows; looked is when it was last told to look.
	left   *leftovers
	looked time.Time
}

// watchDue says that the sessions are to be looked at.
type watchDue struct{}

func newOwner(env *environment, records []staged.Record) *owner {
	return &owner{environment: env, records: records, left: &leftovers{environment: env}}
}

// Start begins to watch the sessions of what earlier runs have staged.
func (o *owner) Start(s *actors.Supervisor) {
	o.supervisor = s
	sessions := map[string]users{}
	for _, r := range o.records {
		o.Metrics.ArrayStaged(string(r.Attachment.Protocol), 1)
		if target := r.Attachment.Target; target != "" {
			if sessions[target] == nil {
				sessions[target] = users{}
			}
			sessions[target][r.Volume] = r.Attachment
		}
	}
	o.records = nil
	for target, u := range sessions {
		s.Wake(messages.KeyOf(kindSession, target), u, &messages.Resume{})
	}
	o.watchLater()
}

// Stop stops the watch.
func (o *owner) Stop() { actors.StopTimer(o.watch) }

// Asked passes all on.
func (o *owner) Asked(messages.Request) bool { return false }

// Wake has nothing to hand over.
func (o *owner) Wake(messages.Request) any { return nil }

// Props describes an actor.
func (o *owner) Props(id volume.ID, state any) *actor.Props {
	switch kind, name := messages.SplitKey(id); kind {
	case kindSession:
		u, ok := state.(users)
		if !ok {
			u = users{}
		}
		return o.changes.Props(id, "session to "+name, &session{environment: o.environment, target: name, users: u})
	case kindReport:
		return o.reports.Props(id, "report of "+name, &report{environment: o.environment, attachment: name})
	case kindLeftovers:
		return o.reports.Props(id, "what is left of detached volumes", o.left)
	default:
		return o.changes.Props(id, "volume "+name, &subject{environment: o.environment, volume: name})
	}
}

// Idle has nothing to note.
func (o *owner) Idle(volume.ID, any, bool) {}

// Sleep has nothing to keep.
func (o *owner) Sleep(volume.ID, any) {}

// Receive handles what is for the owner.
func (o *owner) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *watchDue:
		for _, id := range o.supervisor.Active() {
			if kind, _ := messages.SplitKey(id); kind == kindSession {
				o.supervisor.Tell(id, &messages.Resume{})
			}
		}
		o.lookForLeftovers()
		o.watchLater()
	default:
		actors.IgnoreLifecycle(o.Log, c)
	}
}

// lookForLeftovers wakes the actor of the leftovers now and then.
func (o *owner) lookForLeftovers() {
	id := messages.KeyOf(kindLeftovers, "")
	if time.Since(o.looked) < leftoversInterval || o.supervisor.IsAwake(id) {
		return
	}
	o.looked = time.Now()
	o.supervisor.Wake(id, nil, &messages.Resume{})
}

func (o *owner) watchLater() {
	root, self := o.Root, o.supervisor.Self()
	o.watch = time.AfterFunc(o.WatchInterval, func() { root.Send(self, &watchDue{}) })
}

// useSession logs in to the target of an attachment, for its volume.
func (e *environment) useSession(ctx context.Context, a pools.Attachment) error {
	return e.Change(ctx, &messages.UseSession{Routing: messages.Routing{ID: messages.KeyOf(kindSession, a.Target)}, Attachment: a})
}

// releaseSession says that a volume needs the session of its attachment no more.
func (e *environment) releaseSession(ctx context.Context, a pools.Attachment) error {
	return e.Change(ctx, &messages.ReleaseSession{
		Routing: messages.Routing{ID: messages.KeyOf(kindSession, a.Target)}, Target: a.Target, Volume: a.Volume,
	})
}

// report writes into the attachment of a volume whether its session carries I/O, sooner or later.
func (e *environment) report(id string, active bool) {
	name := pools.AttachmentName(id, e.NodeName)
	m := &messages.ReportSession{Routing: messages.Routing{ID: messages.KeyOf(kindReport, name)}, Attachment: name, Active: active}
	m.Prepare()
	e.Root.Send(e.Supervisor(), m)
}
