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
	// either: the pods' work is not ours to hold up. A batch takes some 1.5 ms of
	// CPU.
	surveyRest = 25 * time.Millisecond
	// volumeShare is the part of a batch that a volume costs before the first name
	// in it is looked at.
	volumeShare = fullBatch / 16
	// refusedPause is how long the surveyor waits when the workers take nothing
	// more on: then the file system hangs, and there is no hurry.
	refusedPause = time.Minute
)

// ground is what the surveyor needs of scratch.Dir.
type ground interface {
	Usage(ctx context.Context, pod volume.PodUID, id volume.ID, pace scratch.Pace) (bytes, inodes int64, err error)
}

// surveyor measures how much space the retained volumes take, one at a time and
// behind everything else. Nothing waits for it and nothing hangs on what it
// finds. It has no part in the turns of erasures: one that hangs must not keep
// space from coming free.
type surveyor struct {
	ctx       context.Context
	ground    ground
	workers   *workers
	calls     *calls
	retention *actor.PID
	log       logr.Logger

	// seen is what was looked at since the last rest. The measurement that runs
	// uses it, and there is one at a time.
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
		bytes, err := s.measure(m)
		if s.ctx.Err() != nil {
			return // the daemon is stopping
		}
		if err != nil {
			// Gone meanwhile, most likely. It counts as nothing.
			s.log.V(1).Info("cannot measure a retained volume", keyVolume, m.ID, keyPod, m.Pod, "cause", err.Error())
		}
		root.Send(s.retention, &messages.Surveyed{ID: m.ID, Unpublished: m.Unpublished, Bytes: bytes})
	})
	if err != nil && s.ctx.Err() == nil {
		s.timer = time.AfterFunc(refusedPause, func() { root.Send(self, m) })
	}
}

func (s *surveyor) measure(m *messages.Survey) (bytes int64, err error) {
	err = guard(s.log, func() (err error) {
		defer idle()()
		if err := s.rest(s.ctx, volumeShare); err != nil {
			return err
		}
		bytes, _, err = s.ground.Usage(s.ctx, m.Pod, m.ID, s.rest)
		return err
	})
	return bytes, err
}

// rest waits after each batch, whichever volumes it was of, and then until no
// calls run. It is a scratch.Pace.
func (s *surveyor) rest(ctx context.Context, seen int) error {
	s.seen += seen
	if s.seen < fullBatch {
		return nil
	}
	s.seen = 0
	timer := time.NewTimer(surveyRest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.calls.yield(ctx, longestYield)
	case <-ctx.Done():
		return ctx.Err()
	}
}
