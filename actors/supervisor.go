package actors

import (
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// supervisor is the only writer of the table from volume ID to actor. It
// routes requests, wakes and puts to sleep, and has others try again; it does
// no I/O, never waits, and keeps nothing that a restart of the daemon could
// not rebuild.
type supervisor struct {
	*environment
	self      *actor.PID
	retention *actor.PID
	table     map[volume.ID]*entry
	// byActor finds the volume of an actor that failed or ended.
	byActor map[string]volume.ID
	// numbers names actors and questions; each is used once, so that nothing
	// late reaches a successor.
	numbers uint64
	fatal   func(error)
	// sees says why the kubelet's pods cannot be seen; nil when they can.
	sees func(error)
	// sawNoPods: the kubelet's pods directory was empty when last read.
	sawNoPods bool
	// stopping: nothing new is started. The library goes on delivering messages
	// while it waits for the children to end, and would wait for ever for one
	// that is spawned then.
	stopping bool
	// more is for tests.
	more []actor.ReceiverMiddleware
}

// resumeDue says that a stuck volume may try again.
type resumeDue struct {
	id    volume.ID
	actor string
}

// restartDue says that the actor that failed may be restarted.
type restartDue struct {
	id    volume.ID
	actor *actor.PID
}

func (s *supervisor) Receive(c actor.Context) {
	if s.stopping {
		if request, ok := c.Message().(messages.Failer); ok {
			request.Fail(fmt.Errorf("%w: the daemon is stopping", volume.ErrUnavailable))
		}
		return
	}
	switch m := c.Message().(type) {
	case messages.Request:
		s.route(c, m)
	case *messages.Woken:
		s.woken(c, m)
	case *messages.AtRest:
		s.atRest(c, m)
	case *actor.Terminated:
		s.terminated(c, m)
	case *messages.Evict:
		s.evict(c, m)
	case *messages.Stuck:
		s.stuck(c, m)
	case *resumeDue:
		s.resume(c, m)
	case *restartDue:
		s.restart(c, m)
	case *messages.PodsSeen:
		s.podsSeen(c, m)
	case *podsLeft:
		s.lookForPods(c, m)
	case *messages.FindUnknown:
		s.findUnknown(c, m)
	case *messages.Status, *messages.ProbeStore:
		c.Send(s.records.recorder, m)
	default:
		ignoreLifecycle(s.log, c)
	}
}

// route passes a request on to its volume's actor, or keeps it until there is one.
func (s *supervisor) route(c actor.Context, m messages.Request) {
	e := s.table[m.Volume()]
	if e == nil {
		e = &entry{}
		s.table[m.Volume()] = e
		s.wake(c, m.Volume(), e)
	}
	switch e.state {
	case active:
		s.tell(c, e, m)
	case parked:
		m.Fail(fmt.Errorf("%w: the actor of volume %s failed %d times and is restarted at %s; its failures are in the log",
			volume.ErrUnavailable, m.Volume(), e.failures, e.restartAt.Format(time.RFC3339)))
	default:
		e.waiting = append(e.waiting, m)
	}
}

// tell sends a message to a volume's actor and counts it: the actor is at rest
// only when it has seen them all.
func (s *supervisor) tell(c actor.Context, e *entry, m messages.ToVolume) {
	e.sent++
	c.Send(e.actor, m)
}

// wake asks for the record of a volume that may be asleep.
func (s *supervisor) wake(c actor.Context, id volume.ID, e *entry) {
	s.numbers++
	e.state, e.question = waking, s.numbers
	c.Send(s.retention, &messages.Wake{ID: id, Seq: e.question})
}

func (s *supervisor) woken(c actor.Context, m *messages.Woken) {
	e := s.table[m.ID]
	if e == nil || e.state != waking || e.question != m.Seq {
		return // an eviction brought the record before
	}
	s.activate(c, m.ID, e, m.Record)
}

// activate starts a volume's actor and gives it the requests that waited.
func (s *supervisor) activate(c actor.Context, id volume.ID, e *entry, record *volume.Record) {
	s.numbers++
	pid, err := c.SpawnNamed(volumeProps(s.environment, s.self, id, record, s.more...), "volume"+strconv.FormatUint(s.numbers, 10))
	if err != nil {
		// The name is new and the producer cannot fail.
		panic(fmt.Errorf("spawn the actor of volume %s: %w", id, err))
	}
	waiting := e.waiting
	*e = entry{state: active, actor: pid}
	s.byActor[pid.Id] = id
	for _, m := range waiting {
		s.tell(c, e, m)
	}
	if record != nil && record.Phase != volume.Retained {
		// It goes on with what it was in the middle of.
		s.tell(c, e, &messages.Resume{})
	}
}

// activeEntry returns the volume's entry if the named actor is the one that
// runs. What an earlier one said before it ended says nothing about the volume
// as it is now.
func (s *supervisor) activeEntry(id volume.ID, actorName string) *entry {
	e := s.table[id]
	if e == nil || e.state != active || e.actor.Id != actorName {
		return nil
	}
	return e
}

// atRest puts a volume to sleep that has nothing to do, unless it has by now.
func (s *supervisor) atRest(c actor.Context, m *messages.AtRest) {
	e := s.activeEntry(m.ID, m.Actor)
	if e == nil {
		return
	}
	if e.sent != m.Received {
		if m.Record == nil {
			// What has come meanwhile is about a new volume.
			s.evictionOver(m.ID, e, true)
		}
		return
	}
	e.state = ending
	if m.Record != nil {
		c.Send(s.retention, &messages.Retain{Record: *m.Record, Failed: m.Failed, Tries: m.Tries})
	}
	s.evictionOver(m.ID, e, m.Record == nil)
	c.Poison(e.actor)
}

// terminated drops the entry of an actor that has ended, or begins anew when
// requests have come meanwhile.
func (s *supervisor) terminated(c actor.Context, m *actor.Terminated) {
	id, ok := s.byActor[m.Who.Id]
	if !ok {
		return
	}
	delete(s.byActor, m.Who.Id)
	e := s.table[id]
	if len(e.waiting) == 0 {
		delete(s.table, id)
	} else {
		s.wake(c, id, e)
	}
	if e.handedBack != nil {
		s.evict(c, e.handedBack)
	}
}

// evict has a volume deleted whose record the retention actor hands back.
func (s *supervisor) evict(c actor.Context, m *messages.Evict) {
	id := m.Record.ID
	switch e := s.table[id]; {
	case e == nil:
		e = &entry{}
		s.table[id] = e
		s.activate(c, id, e, &m.Record)
		e.evicting = true
		s.tell(c, e, &messages.DeleteVolume{Reason: m.Reason, Factor: m.Factor, Tries: m.Tries})
	case e.state == ending:
		e.handedBack = m // due as soon as it went to sleep
	case e.state == waking:
		// Somebody asked for the volume at the same moment: that comes first,
		// and if it is still retained afterwards, it is due again.
		s.activate(c, id, e, &m.Record)
		c.Send(s.retention, &messages.EvictionOver{ID: id})
	default:
		panic(fmt.Errorf("volume %s is asleep and awake at the same time", id))
	}
}

// evictionOver tells the retention actor, if it waits for this volume's
// deletion, to go on with others.
func (s *supervisor) evictionOver(id volume.ID, e *entry, deleted bool) {
	if e.evicting {
		e.evicting = false
		s.root.Send(s.retention, &messages.EvictionOver{ID: id, Deleted: deleted})
	}
}

// stuck has a volume try again after a while.
func (s *supervisor) stuck(c actor.Context, m *messages.Stuck) {
	e := s.activeEntry(m.ID, m.Actor)
	if e == nil {
		return
	}
	if m.Phase == volume.Deleting {
		s.evictionOver(m.ID, e, false)
		return
	}
	wait := unmountBackoff.after(m.Attempt)
	if m.Attempt == 1 {
		s.log.Error(m.Err, "volume is stuck, trying again until it gets on", logkeys.About(m.Record, logkeys.Phase, m.Phase.String())...)
	}
	if e.resuming {
		return // one timer is enough
	}
	e.resuming = true
	time.AfterFunc(wait, func() { s.root.Send(s.self, &resumeDue{id: m.ID, actor: m.Actor}) })
}

func (s *supervisor) resume(c actor.Context, m *resumeDue) {
	e := s.table[m.id]
	if e == nil || e.actor == nil || e.actor.Id != m.actor {
		return
	}
	e.resuming = false
	if e.state == active { // else the restart of a parked actor resumes it
		s.tell(c, e, &messages.Resume{})
	}
}

// findUnknown leaves out the volumes that are awake and passes the rest on to
// who knows those asleep.
func (s *supervisor) findUnknown(c actor.Context, m *messages.FindUnknown) {
	rest := &messages.FindUnknown{Reply: m.Reply}
	for _, dir := range m.Places {
		if s.table[dir.ID] == nil {
			rest.Places = append(rest.Places, dir)
		}
	}
	c.Send(s.retention, rest)
}
