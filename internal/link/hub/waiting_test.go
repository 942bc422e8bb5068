package hub

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestWaiting: what a node has to archive is what it said last, by this process' clock, and nothing once it is away. A
// node that archives nothing is not among them.
func TestWaiting(t *testing.T) {
	s := newStage(t).listen(nil)
	archives := s.connect("n1", s.cluster.add("katbox-1", "uid-1", "n1"), nil)
	other := s.connect("n2", s.cluster.add("katbox-2", "uid-2", "n2"), nil)
	wait := func(what string, is func(Waiting) bool) {
		t.Helper()
		s.wait(what, func() bool { all := s.Waiting(); return len(all) == 1 && all[0].Node == "n1" && is(all[0]) })
	}
	// Its clock is years behind.
	at := time.Unix(1700000000, 0)
	other.say(api.Summary{Full: true, Time: at})
	archives.say(api.Summary{Full: true, Time: at, Archive: &api.ArchiveWaiting{
		Volumes: 2, Bytes: 7, Oldest: at.Add(-time.Hour), Newest: at.Add(time.Second),
	}})
	wait("what waits", func(w Waiting) bool {
		oldest, newest := time.Since(w.Oldest), time.Since(w.Newest)
		return w.Volumes == 2 && w.Bytes == 7 && oldest >= time.Hour && oldest < time.Hour+patience && newest >= 0 && newest < patience
	})
	archives.say(api.Summary{Time: at.Add(time.Minute)})
	archives.say(api.Summary{Time: at.Add(time.Minute), Archive: &api.ArchiveWaiting{}})
	wait("that nothing waits", func(w Waiting) bool { return w == Waiting{Node: "n1"} })
	archives.end()
	s.wait("the end of the connection", func() bool { return len(s.Waiting()) == 0 })
}

// TestWaitingIsBounded: numbers that no node has break the protocol.
func TestWaitingIsBounded(t *testing.T) {
	for _, said := range []api.ArchiveWaiting{{Volumes: -1}, {Volumes: mostVolumes + 1}, {Bytes: -1}} {
		c := &connection{name: "n1"}
		if err := c.takeWaiting(&said, time.Now()); !errors.Is(err, errProtocol) || c.waiting.Load() != nil {
			t.Errorf("%+v: %v", said, err)
		}
	}
}
