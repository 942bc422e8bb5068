package ephemeral

import (
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/retained"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// What the test tells the sleepers, in place of the supervisor.
type (
	putToSleep    struct{ record volume.Record }
	takeOut       struct{ id volume.ID }
	deletionEnded struct{ id volume.ID }
)

const bedroomName = "bedroom"

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func newTestSleepers(queue *retained.Queue, early bool, m *metrics.Metrics) *sleepers {
	s := newSleepers(queue, maxEvictions, early, m, logr.Discard())
	s.evict = func(volume.Record, *messages.DeleteVolume) {}
	s.measure = func() {}
	s.survey = func(*messages.Survey) {}
	return s
}

// spawnBedroom runs sleepers in an actor of their own.
func spawnBedroom(tb testing.TB, system *actor.ActorSystem, s *sleepers, options ...actor.PropsOption) *actor.PID {
	tb.Helper()
	s.tick = func(m any) { system.Root.Send(system.NewLocalPID(bedroomName), m) }
	pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			s.goOn()
		case *putToSleep:
			s.add(resting{record: &m.record})
		case *takeOut:
			s.take(m.id)
		case *deletionEnded:
			s.ended(m.id, true)
		case *messages.Pressure:
			s.pressure(m)
		case *messages.Surveyed:
			s.measured(m)
		case *evictionDue:
			s.due()
		case *sizesDue:
			s.sizesDue()
		case *actor.Stopping:
			s.stop()
		}
	}, options...), bedroomName)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}
