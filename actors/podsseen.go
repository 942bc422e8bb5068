package actors

import (
	"fmt"

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

// podsSeen lets the volumes look for their pods. From a directory without a single
// pod nothing is concluded while volumes are published: on a node with a kubelet
// there is at least one pod, the daemon's own. It is not the kubelet's directory then,
// or not mounted into the container, and mounts cannot be seen there either.
func (s *supervisor) podsSeen(c actor.Context, m *messages.PodsSeen) {
	published := s.awake()
	if len(m.Names) > 0 || len(published) == 0 {
		s.sawNoPods = false
		s.sees(nil)
		s.lookForPods(c, &podsLeft{seen: m, volumes: published})
		return
	}
	const empty = "the kubelet's pods directory is empty though volumes are published; is it the right one, and mounted into the container?"
	if !s.sawNoPods {
		s.log.Error(nil, empty, "directory", s.podsDir, "volumes", len(published))
	}
	s.sawNoPods = true
	s.sees(fmt.Errorf("%s: %s", s.podsDir, empty))
}

// awake returns the volumes that have an actor, without those that are being deleted.
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
