package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// surveyRest is how long the surveyor rests after each batch when no calls run
	// either: the pods' work is not ours to hold up. A batch takes about a
	// millisecond of CPU.
	surveyRest = 25 * time.Millisecond
	// volumeShare is the part of a batch that a volume costs before the first name
	// in it is looked at.
	volumeShare = fullBatch / surveyRound
	// surveyRound is how many volumes the surveyor is given at a time: as many as
	// make a batch when there is nothing in them.
	surveyRound = 16
	// The backlog of a start may be a million volumes. It is measured in larger
	// batches, because each has a cost of its own, with rests so long that a node at
	// rest does not notice: less than half a percent of a CPU, 64 empty volumes a
	// second.
	backlogBatch = 8 * fullBatch
	backlogRound = 8 * surveyRound
	backlogRest  = 2 * time.Second
	// surveyCollects is how long after the surveyor ran out of work it is given less
	// than a round: to begin one costs more than to measure a small volume.
	surveyCollects = 250 * time.Millisecond
	// refusedPause is how long the surveyor waits when the workers take nothing
	// more on: then the file system hangs, and there is no hurry.
	refusedPause = time.Minute
)

// ground is what the surveyor needs of scratch.Dir.
type ground interface {
	Usage(ctx context.Context, p volume.Place, pace scratch.Pace) (bytes, inodes int64, err error)
}

// surveyor measures how much space the retained volumes take, one after the other
// and behind everything else. Nothing waits for it and nothing hangs on what it
// finds. It has no part in the turns of erasures: one that hangs must not keep
// space from coming free.
type surveyor struct {
	ctx       context.Context
	ground    ground
	workers   *workers
	calls     *calls
	retention *actor.PID
	log       logr.Logger

	// seen is what was looked at since the last rest. The round that runs uses it,
	// and there is one at a time.
	seen  int
	timer *time.Timer
}

func surveyorProps(s surveyor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { copied := s; return &copied },
		actor.WithReceiverMiddleware(recovering(s.log)))
}

func (s *surveyor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Survey:
		s.survey(c, m)
	case *actor.Stopping:
		stopTimer(s.timer)
	default:
		ignoreLifecycle(s.log, c)
	}
}

func (s *surveyor) survey(c actor.Context, m *messages.Survey) {
	root, self := c.ActorSystem().Root, c.Self()
	err := s.workers.Go(func() {
		r := round{surveyor: s, backlog: m.Backlog, send: func(m *messages.Surveyed) { root.Send(s.retention, m) }}
		r.run(m.Volumes)
	})
	if err != nil && s.ctx.Err() == nil {
		s.timer = time.AfterFunc(refusedPause, func() { root.Send(self, m) })
	}
}
