package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/messages"
)

const (
	// maxRestarts is how often in a row an actor is restarted quickly. A
	// panic is a mistake in the program: what survives five attempts within a
	// few seconds will not go away with a sixth.
	maxRestarts = 5
	// restartWindow is how long an actor must run without a panic before its
	// failures are forgotten. It is longer than all the quick restarts take
	// together, so that the limit is a limit.
	restartWindow = time.Minute
)

// HandleFailure decides what happens after a child's panic. The library calls
// it in the supervisor's own turn, with the child suspended: its messages stay
// queued until it is restarted.
//
// The library's own strategies are not used: one has a backoff without a limit,
// the other a limit without a backoff, after which it stops the child quietly.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	id, ok := s.byActor[child.Id]
	if !ok {
		// Without recorder, retention, pressure or eraser the daemon cannot keep its
		// promises. All it knows is on disk; starting again is the safest.
		s.fatal(fmt.Errorf("actor %s failed: %v", child.Id, reason))
		return
	}
	e, now := s.table[id], time.Now()
	if now.Sub(e.lastFailure) > restartWindow && now.Sub(e.restartAt) > restartWindow {
		e.failures = 0
	}
	e.failures++
	e.lastFailure = now
	// The order to delete it may be the message that is lost.
	s.evictionOver(id, e, false)

	wait := restartBackoff.after(e.failures)
	if e.failures > maxRestarts && e.state == active {
		wait = parkedBackoff.after(e.failures - maxRestarts)
		e.state, e.restartAt = parked, now.Add(wait)
		s.log.Error(fmt.Errorf("panic: %v", reason), "volume parked: its actor failed too often",
			logkeys.VolumeID, id, "failures", e.failures, "restartIn", duration.Format(wait))
		s.metrics.VolumeParked()
	}
	time.AfterFunc(wait, func() { s.root.Send(s.self, &restartDue{id: id, actor: child}) })
}

// restart restarts an actor, unless another one has taken its place.
func (s *supervisor) restart(c actor.Context, m *restartDue) {
	e := s.table[m.id]
	if e == nil || e.actor == nil || e.actor.Id != m.actor.Id {
		return
	}
	if e.state == parked {
		e.state = active
		s.metrics.VolumeUnparked()
	}
	s.metrics.ActorRestarted()
	c.(actor.Supervisor).RestartChildren(m.actor)
	// The message at which it failed is lost, and with it perhaps a Resume.
	s.tell(c, e, &messages.Resume{})
}
