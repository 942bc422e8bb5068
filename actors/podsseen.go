package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// podsBatch is how many volumes look for their pods in a row. It takes less than a
// millisecond.
const podsBatch = 128

// podsLeft is what is left to do of a PodsSeen.
type podsLeft struct {
	seen    *messages.PodsSeen
	volumes []volume.ID
}

// podsSeen lets the volumes look for their pods. That there is not a single pod
// while volumes are published is possible, but more often the daemon was given
// a directory that is not the kubelet's.
func (s *supervisor) podsSeen(c actor.Context, m *messages.PodsSeen) {
	published := s.awake()
	empty := len(m.Names) == 0 && len(published) > 0
	if empty && !s.sawNoPods {
		s.log.Error(nil, "the kubelet's pods directory is empty though volumes are published; is it the right one, and mounted into the container?",
			"directory", s.podsDir, "volumes", len(published), "retainedAfter", s.orphanGrace.String())
	}
	s.sawNoPods = empty
	s.lookForPods(c, &podsLeft{seen: m, volumes: published})
}

// awake returns the volumes that have an actor, but for those that are being
// deleted.
func (s *supervisor) awake() []volume.ID {
	ids := make([]volume.ID, 0, len(s.table))
	for id, e := range s.table {
		if e.state == active && !e.evicting {
			ids = append(ids, id)
		}
	}
	return ids
}

// lookForPods has the first of the volumes look, and then gives way to what has
// come meanwhile: there may be thousands, and calls wait for the supervisor.
func (s *supervisor) lookForPods(c actor.Context, m *podsLeft) {
	now := m.volumes[:min(len(m.volumes), podsBatch)]
	for _, id := range now {
		if e := s.table[id]; e != nil && e.state == active {
			s.tell(c, e, m.seen)
		}
	}
	if rest := m.volumes[len(now):]; len(rest) > 0 {
		c.Send(s.self, &podsLeft{seen: m.seen, volumes: rest})
	}
}
