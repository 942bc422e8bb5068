package hub

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// Waiting is what a connected node still has to archive, as it has said.
type Waiting struct {
	Node    string
	Volumes int
	Bytes   int64
	// Oldest and Newest are when the first and the last of them were retained, by the clock of this process. They are
	// zero if the node did not say.
	Oldest, Newest time.Time
}

// Waiting returns what waits on the connected nodes that archive, those on which nothing waits among them.
func (r *Registry) Waiting() []Waiting {
	var all []Waiting
	for _, n := range r.all() {
		l := n.look()
		if !l.connected || l.heard == nil {
			continue
		}
		if w := l.heard.waiting.Load(); w != nil {
			all = append(all, *w)
		}
	}
	return all
}

// takeWaiting notes what a node says at a time of its clock.
func (c *connection) takeWaiting(said *api.ArchiveWaiting, at time.Time) error {
	if said == nil {
		return nil
	}
	if said.Volumes < 0 || said.Volumes > mostVolumes || said.Bytes < 0 {
		return fmt.Errorf("%w: %d volumes with %d bytes wait to be archived", errProtocol, said.Volumes, said.Bytes)
	}
	now := time.Now()
	c.waiting.Store(&Waiting{
		Node: c.name, Volumes: said.Volumes, Bytes: said.Bytes, Oldest: here(said.Oldest, at, now), Newest: here(said.Newest, at, now),
	})
	return nil
}

// here returns a time of a node's clock, which shows at, by the clock that shows now. What is yet to come is now.
func here(t, at, now time.Time) time.Time {
	if t.IsZero() || at.IsZero() {
		return time.Time{}
	}
	return now.Add(-max(0, at.Sub(t)))
}
