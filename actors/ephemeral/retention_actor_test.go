package ephemeral

import (
	"context"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/messages"
)

// What the test tells the retention, in place of the supervisor.
type (
	putToSleep    struct{ record volume.Record }
	takeOut       struct{ id volume.ID }
	deletionEnded struct{ id volume.ID }
)

const retentionName = "retention"

func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func newTestRetention(index *retained.Index, early bool, m *metrics.Metrics) *retention {
	s := newRetention(context.Background(), index, maxDeletions, early, m, logr.Discard())
	s.delete = func(retained.Known, *messages.DeleteVolume) {}
	s.measureDisk = func() {}
	s.measureSizes = func(*messages.MeasureSizes) {}
	return s
}

// spawnRetention runs retention in an actor of their own.
func spawnRetention(tb testing.TB, system *actor.ActorSystem, s *retention, options ...actor.PropsOption) *actor.PID {
	tb.Helper()
	s.tick = func(m any) { system.Root.Send(system.NewLocalPID(retentionName), m) }
	pid, err := system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			s.deleteDue()
		case *putToSleep:
			s.add(resting{record: &m.record})
		case *takeOut:
			s.index.Forget(m.id)
			s.changed()
		case *deletionEnded:
			s.index.Forget(m.id)
			s.ended(m.id, true)
		case *messages.Pressure:
			s.pressure(m)
		case *messages.SizesMeasured:
			s.sizesMeasured(m)
		case *deletionDue:
			s.due()
		case *sizesDue:
			s.sizesDue()
		case *actor.Stopping:
			s.stop()
		}
	}, options...), retentionName)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}
