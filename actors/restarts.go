package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// MaxRestarts is how often in a row an actor is restarted quickly. A panic is a mistake in the
	// program: what survives five attempts within a few seconds will not go away with a sixth.
	MaxRestarts = 5
	// restartWindow is how long an actor must run without a panic before its failures are
	// forgotten. It is longer than all the quick restarts take together, so that the limit is a
	// limit.
	restartWindow = time.Minute
)

// resumeDue says that a stuck volume may go on.
type resumeDue struct {
	id    volume.ID
	actor string
}

// restartDue says that the actor that failed may be restarted.
type restartDue struct {
	id    volume.ID
	actor *actor.PID
}

// HandleFailure decides what happens after a child's panic. The library calls it in the
// supervisor's own turn, with the child suspended: its messages stay queued until it is restarted.
//
// The library's own strategies are not used: one has a backoff without a limit, the other a limit
// without a backoff, after which it stops the child quietly.
func (s *Supervisor) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	id, ok := s.byActor[child.Id]
	if !ok {
		// Without one of the single actors the daemon cannot keep its promises. All it knows is on
		// disk; starting again is the safest.
		s.fatal(fmt.Errorf("actor %s failed: %v", child.Id, reason))
		return
	}
	if s.stopping {
		return // a child that failed ends too
	}
	e, now := s.awake[id], time.Now()
	if now.Sub(e.lastFailure) > restartWindow && now.Sub(e.restartAt) > restartWindow {
		e.failures = 0
	}
	e.failures++
	e.lastFailure = now
	s.kind.Idle(id, nil, false) // the message that is lost may be the order to do something

	wait := RestartBackoff.After(e.failures)
	if e.failures > MaxRestarts && e.state == active {
		wait = ParkedBackoff.After(e.failures - MaxRestarts)
		e.state, e.restartAt = parked, now.Add(wait)
		s.log.Error(fmt.Errorf("panic: %v", reason), "volume parked: its actor failed too often",
			logkeys.VolumeID, id, "failures", e.failures, "restartIn", duration.Format(wait))
		s.metrics.VolumeParked()
	}
	StopTimer(e.restart)
	e.restart = time.AfterFunc(wait, func() { s.root.Send(s.self, &restartDue{id: id, actor: child}) })
}

// restart restarts an actor, unless another one has taken its place.
func (s *Supervisor) restart(m *restartDue) {
	e := s.entryOf(m.id, m.actor.Id)
	if e == nil {
		return
	}
	if e.state == parked {
		e.state = active
		s.metrics.VolumeUnparked()
	}
	s.metrics.ActorRestarted()
	s.context.(actor.Supervisor).RestartChildren(m.actor)
	// The message at which it failed is lost, and with it perhaps a Resume.
	s.tell(e, &messages.Resume{})
}

// stuck resumes a volume after a while.
func (s *Supervisor) stuck(m *messages.Stuck) {
	e := s.entryOf(m.ID, m.Actor)
	if e == nil || e.state != active || e.resume != nil {
		return
	}
	due := &resumeDue{id: m.ID, actor: m.Actor}
	e.resume = time.AfterFunc(StuckBackoff.After(m.Attempt), func() { s.root.Send(s.self, due) })
}

// stopTimers stops the timers of a volume whose actor ends.
func (e *entry) stopTimers() {
	StopTimer(e.resume)
	StopTimer(e.restart)
}

func (s *Supervisor) resume(m *resumeDue) {
	e := s.entryOf(m.id, m.actor)
	if e == nil {
		return
	}
	e.resume = nil
	if e.state == active { // else the restart of a parked actor resumes it
		s.tell(e, &messages.Resume{})
	}
}

var (
	// StuckBackoff is short at first: a process that keeps a target busy usually ends within the
	// second, and the kubelet's own first retry comes after half a second.
	StuckBackoff = retry.Backoff{First: 50 * time.Millisecond, Longest: 15 * time.Second, Jitter: 0.1}
	// RestartBackoff is for actors that panicked.
	RestartBackoff = retry.Backoff{First: 100 * time.Millisecond, Longest: 5 * time.Second, Jitter: 0.1}
	// ParkedBackoff is for volumes whose actor has failed too often.
	ParkedBackoff = retry.Backoff{First: time.Minute, Longest: 30 * time.Minute, Jitter: 0.1}
)
