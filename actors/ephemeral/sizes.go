package ephemeral

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

const (
	// sizesRest is how long the sizes actor rests after each batch when no calls run either: the
	// pods' work comes first. A batch takes about a millisecond of CPU.
	sizesRest = 25 * time.Millisecond
	// volumeShare is the part of a batch that a volume costs before the first name in it is read.
	volumeShare = pace.FullBatch / maxSizes
	// maxSizes is how many volumes are asked about at a time: as many as make a batch when they
	// are empty.
	maxSizes = 16
	// The backlog of a start may be a million volumes. It is measured in larger batches, because
	// each has a cost of its own, with rests so long that a node at rest does not notice: less than
	// half a percent of a CPU, 43 empty volumes a second; with a million in cold caches 64 took 0.65 %.
	backlogBatch    = 8 * pace.FullBatch
	maxBacklogSizes = 8 * maxSizes
	backlogRest     = 3 * time.Second
	// collectSizes is how long fewer than maxSizes volumes are collected after the last measurement:
	// to begin one costs more than to measure a small volume.
	collectSizes = 250 * time.Millisecond
	// refusedPause is the wait when no worker is free: then the file system hangs, and there is no
	// hurry.
	refusedPause = time.Minute
)

// usage is what the sizes actor needs of scratch.Dir.
type usage interface {
	Usage(ctx context.Context, p volume.Place, pace scratch.Pace) (bytes, inodes int64, err error)
}

// sizes measures how much space the retained volumes take, one after the other and behind
// everything else. Nothing waits for it, and a wrong size does no harm. It takes no turn of the
// erasures: a measurement that hangs must not keep space from coming free.
type sizes struct {
	*environment
	usage      usage
	supervisor *actor.PID
	// sinceRest is how much was read since the last rest. Only the measurement that runs uses it.
	sinceRest int
	timer     *time.Timer
}

func (s *sizes) props() *actor.Props {
	return actor.PropsFromFunc(s.Receive, actor.WithReceiverMiddleware(actors.Recovering(s.Log)))
}

func (s *sizes) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.MeasureSizes:
		s.measureSizes(c, m)
	case *actor.Stopping:
		actors.StopTimer(s.timer)
	default:
		actors.IgnoreLifecycle(s.Log, c)
	}
}

func (s *sizes) measureSizes(c actor.Context, m *messages.MeasureSizes) {
	root, self := c.ActorSystem().Root, c.Self()
	err := s.Workers.Go(func() {
		r := measurement{sizes: s, backlog: m.Backlog, send: func(m *messages.SizesMeasured) { root.Send(s.supervisor, m) }}
		r.run(m.Volumes)
	})
	if err != nil && s.ctx.Err() == nil {
		s.timer = time.AfterFunc(refusedPause, func() { root.Send(self, m) })
	}
}

// measurement answers one MeasureSizes, in a worker.
type measurement struct {
	*sizes
	backlog bool
	// large: the volume has been measured for a whole batch. Volumes that are retained meanwhile
	// must not wait for hours.
	large bool
	send  func(*messages.SizesMeasured)
	// found are the sizes that have not been sent yet.
	found  []messages.VolumeSize
	rested bool
}

// run measures the volumes up to the first rest: volumes that are retained meanwhile go before
// those that are left.
func (r *measurement) run(volumes []volume.Record) {
	defer actors.LowPriority()()
	for i := range volumes {
		v := &volumes[i]
		r.large = false
		size := r.measure(v)
		if r.ctx.Err() != nil {
			return // the daemon is stopping
		}
		if r.found == nil {
			r.found = make([]messages.VolumeSize, 0, len(volumes)-i)
		}
		r.found = append(r.found, messages.VolumeSize{ID: v.ID, Unpublished: v.Unpublished, Size: size})
		if err := r.rest(r.ctx, volumeShare); err != nil {
			return // the daemon is stopping
		}
		if r.rested {
			break
		}
	}
	r.send(&messages.SizesMeasured{Sizes: r.found, Done: true})
}

func (r *measurement) measure(v *volume.Record) (size volume.Size) {
	if q, ok := r.held(v); ok {
		return q.Used
	}
	err := actors.Guard(r.Log, func() (err error) {
		size.Bytes, size.Inodes, err = r.usage.Usage(r.ctx, v.Place(), r.rest)
		return err
	})
	if err != nil && r.ctx.Err() == nil {
		// It is gone meanwhile, most likely, and counts as nothing.
		r.Log.V(1).Info("cannot measure a retained volume", logkeys.About(*v, logkeys.Cause, err.Error())...)
	}
	return size
}

// rest waits after each batch, and then until no calls run. It sends the sizes that are known by
// then before. It is a scratch.Pace.
func (r *measurement) rest(ctx context.Context, seen int) error {
	r.sinceRest += seen
	full, rest := pace.FullBatch, sizesRest
	if r.backlog && !r.large {
		full, rest = backlogBatch, backlogRest
	}
	if r.sinceRest < full {
		return nil
	}
	r.sinceRest, r.rested, r.large = 0, true, true
	if len(r.found) > 0 {
		r.send(&messages.SizesMeasured{Sizes: r.found})
		r.found = nil
	}
	if err := retry.Pause(ctx, rest); err != nil {
		return err
	}
	return r.calls.Yield(ctx, pace.LongestYield)
}

// sizesDue says that more to measure has had time to come.
type sizesDue struct{}

// sizesMeasured takes sizes over.
func (r *retention) sizesMeasured(m *messages.SizesMeasured) {
	r.sizesAsked = !m.Done
	for _, size := range m.Sizes {
		r.index.Measured(size.ID, size.Unpublished, size.Size)
	}
	if m.Done && r.index.Unmeasured() == 0 {
		r.sizesKnown = time.Now()
	}
	r.deleteDue() // a namespace may be known now to retain too much
}

// sizesDue ends the wait.
func (r *retention) sizesDue() {
	r.sizesTimer = nil
	r.askSizes()
}

// askSizes asks for the sizes of the next volumes whose size is not known.
func (r *retention) askSizes() {
	unmeasured := r.index.Unmeasured()
	if r.sizesAsked || unmeasured == 0 {
		return
	}
	if wait := collectSizes - time.Since(r.sizesKnown); wait > 0 && unmeasured < maxSizes {
		if r.sizesTimer == nil {
			r.sizesTimer = time.AfterFunc(wait, func() { r.tick(&sizesDue{}) })
		}
		return
	}
	r.sizesAsked = true
	r.measureSizes(r.nextSizes())
}

// nextSizes is about the volumes that come next: those that were retained just now, and when there
// are none, a larger number of those that the start has found.
func (r *retention) nextSizes() *messages.MeasureSizes {
	m := &messages.MeasureSizes{Volumes: make([]volume.Record, 0, maxSizes)}
	for next := range r.index.NextUnmeasured(maxBacklogSizes) {
		backlog := next.Unpublished.Before(r.started)
		if len(m.Volumes) == 0 {
			m.Backlog = backlog
		}
		if backlog != m.Backlog || !backlog && len(m.Volumes) == maxSizes {
			break
		}
		m.Volumes = append(m.Volumes, next)
	}
	return m
}
