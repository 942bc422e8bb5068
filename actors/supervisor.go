package actors

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// Kind is one kind of volumes: what the supervisor does not know of them. The supervisor calls its
// methods in its own turn, so none of them may block.
type Kind interface {
	// Start is called once, before all others. The kind spawns what it needs beside its volumes.
	Start(s *Supervisor)
	// Asked is called with each request first. When it returns true, the kind takes care of the
	// request; else the supervisor passes it on to the volume's actor.
	Asked(m messages.Request) bool
	// Wake hands over what the kind keeps of a volume that has no actor, and gets one for a request.
	Wake(m messages.Request) (state any)
	// Props describes the actor of a volume, which takes the state over.
	Props(id volume.ID, state any) *actor.Props
	// Idle is called when the actor of a volume says that it has nothing to do. all: it has been sent no
	// more by now, and ends. It is called with a nil state when the actor has panicked.
	Idle(id volume.ID, state any, all bool)
	// Sleep gives the state of a volume back, whose actor has ended.
	Sleep(id volume.ID, state any)
	// Receive handles the messages that are for the kind itself.
	Receive(c actor.Context)
	// Stop is called once, when the supervisor ends: no timer may be left.
	Stop()
}

// Supervisor is the only writer of the table from volume ID to actor. It routes requests, starts
// and ends the actors, restarts those that panicked and resumes those that are stuck. It does no
// I/O and never waits. All it knows can be rebuilt at the next start.
type Supervisor struct {
	kind Kind
	// context is the actor's; the library has one for the life of an actor.
	context actor.Context
	log     logr.Logger
	metrics Metrics
	fatal   func(error)
	self    *actor.PID
	root    *actor.RootContext
	// recorder is nil for a kind without records.
	recorder *actor.PID
	// awake are the volumes that have an actor. byActor finds the volume of an actor.
	awake   map[volume.ID]*entry
	byActor map[string]volume.ID
	// actors numbers the actors: each name is used once, so that nothing late reaches a successor.
	actors uint64
	// stopping: nothing new is started. The library delivers messages while it waits for the
	// children to end, and would wait for ever for one that is spawned then.
	stopping bool
}

// state is what the actor of a volume does.
type state int

const (
	// active: it runs.
	active state = iota
	// ending: it was told to end; requests wait until it has.
	ending
	// parked: it failed too often and is restarted only after a while.
	parked
)

// entry is what the supervisor keeps of a volume that is awake.
type entry struct {
	state state
	actor *actor.PID
	// waiting are the requests that came while the actor was ending, left what the actor left.
	waiting []messages.ToVolume
	left    any
	// sent counts the messages to the actor.
	sent uint64
	// resume is the timer that resumes a stuck volume, nil where none is set; restart is that of an actor that failed.
	resume, restart *time.Timer
	// failures are the panics of the actor within the window, up to lastFailure.
	failures    int
	lastFailure time.Time
	// restartAt is when a parked actor is restarted.
	restartAt time.Time
}

// props describes the actor. It is one instance for good: a restart would stop all its children, so
// a panic in it ends the daemon, which recovers everything at its next start.
func (s *Supervisor) props(recording *Recording, stopped chan struct{}) *actor.Props {
	failed := recoveringWith(s.log, func(reason any) { s.fatal(fmt.Errorf("supervisor failed: %v", reason)) })
	return actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			s.context, s.self = c, c.Self()
			if recording != nil {
				s.recorder = s.Spawn(recorderName, recorderProps(*recording, s.fatal, s.log))
			}
			s.kind.Start(s)
		case *actor.Stopping:
			s.stopping = true
			for _, e := range s.awake {
				e.stopTimers()
			}
			s.kind.Stop()
		case *actor.Stopped:
			close(stopped)
		default:
			s.receive(c)
		}
	}, actor.WithReceiverMiddleware(failed), actor.WithSupervisor(s), AtOnce)
}

// Spawn starts a single actor beside the volumes. A panic in it ends the daemon.
func (s *Supervisor) Spawn(name string, props *actor.Props) *actor.PID {
	pid, err := s.context.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Errorf("spawn the %s: %w", name, err)) // the names are ours alone
	}
	return pid
}

func (s *Supervisor) receive(c actor.Context) {
	if s.stopping {
		if request, ok := c.Message().(messages.Failer); ok {
			request.Fail(ErrStopping)
		}
		return
	}
	switch m := c.Message().(type) {
	case messages.Request:
		if !s.kind.Asked(m) {
			s.route(m)
		}
	case *messages.AtRest:
		s.atRest(m)
	case *messages.Stuck:
		s.stuck(m)
	case *resumeDue:
		s.resume(m)
	case *restartDue:
		s.restart(m)
	case *actor.Terminated:
		s.terminated(m)
	case *messages.Status:
		s.alive(m, m.Reply)
	case *messages.ProbeStore:
		s.alive(m, m.Reply)
	default:
		s.kind.Receive(c)
	}
}

// alive passes a question about the actors' health on to the recorder; where there is none, it answers.
func (s *Supervisor) alive(question any, reply messages.Reply[struct{}]) {
	if s.recorder == nil {
		reply.Send(struct{}{}, nil)
		return
	}
	s.context.Send(s.recorder, question)
}

// route passes a request on to its volume's actor, which it starts where there is none.
func (s *Supervisor) route(m messages.Request) {
	id := m.Route().ID
	e := s.awake[id]
	if e == nil {
		s.Wake(id, s.kind.Wake(m), m)
		return
	}
	switch e.state {
	case active:
		s.tell(e, m)
	case ending:
		e.waiting = append(e.waiting, m)
	case parked:
		m.Fail(fmt.Errorf("%w: the actor of volume %s failed %d times and is restarted at %s; its failures are in the log",
			volume.ErrUnavailable, id, e.failures, duration.When(e.restartAt)))
	}
}

// Wake starts the actor of a volume that has none, with what the kind knows of it, and sends it
// these messages.
func (s *Supervisor) Wake(id volume.ID, state any, first ...messages.ToVolume) {
	s.actors++
	pid, err := s.context.SpawnNamed(s.kind.Props(id, state), "volume"+strconv.FormatUint(s.actors, 10))
	if err != nil {
		panic(fmt.Errorf("spawn the actor of volume %s: %w", id, err)) // the name is new
	}
	e := &entry{actor: pid}
	s.awake[id], s.byActor[pid.Id] = e, id
	for _, m := range first {
		s.tell(e, m)
	}
}

// Tell sends a message to the actor of a volume, if it runs.
func (s *Supervisor) Tell(id volume.ID, m messages.ToVolume) {
	if e := s.awake[id]; e != nil && e.state == active {
		s.tell(e, m)
	}
}

// tell sends a message to an actor and counts it: the actor is at rest when it has seen them all.
func (s *Supervisor) tell(e *entry, m messages.ToVolume) {
	e.sent++
	s.context.Send(e.actor, m)
}

// IsAwake reports whether a volume has an actor.
func (s *Supervisor) IsAwake(id volume.ID) bool { return s.awake[id] != nil }

// Active returns the volumes whose actors run.
func (s *Supervisor) Active() []volume.ID {
	ids := make([]volume.ID, 0, len(s.awake))
	for id, e := range s.awake {
		if e.state == active {
			ids = append(ids, id)
		}
	}
	return ids
}

// Awake returns the volumes that have an actor.
func (s *Supervisor) Awake() []volume.ID { return slices.Collect(maps.Keys(s.awake)) }

// Self is the supervisor's address.
func (s *Supervisor) Self() *actor.PID { return s.self }

// entryOf returns the volume's entry if the named actor is the one that runs. What an earlier one
// said before it ended says nothing about the volume as it is now.
func (s *Supervisor) entryOf(id volume.ID, actorName string) *entry {
	if e := s.awake[id]; e != nil && e.actor.Id == actorName {
		return e
	}
	return nil
}

// atRest ends the actor of a volume that has nothing to do, unless it has by now.
func (s *Supervisor) atRest(m *messages.AtRest) {
	e := s.entryOf(m.ID, m.Actor)
	if e == nil || e.state != active {
		return
	}
	s.kind.Idle(m.ID, m.State, e.sent == m.Received)
	if e.sent == m.Received {
		e.state, e.left = ending, m.State
		s.context.Poison(e.actor)
	}
}

// terminated drops the entry of an actor that has ended, or begins anew when requests have come
// meanwhile.
func (s *Supervisor) terminated(m *actor.Terminated) {
	id, ok := s.byActor[m.Who.Id]
	if !ok {
		return
	}
	e := s.awake[id]
	delete(s.byActor, m.Who.Id)
	delete(s.awake, id)
	e.stopTimers()
	if len(e.waiting) > 0 {
		s.Wake(id, e.left, e.waiting...)
	} else {
		s.kind.Sleep(id, e.left)
	}
}
