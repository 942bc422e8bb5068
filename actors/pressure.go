package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// pressure watches how full the working directory's file system is and tells
// the retention actor.
type pressure struct {
	ctx   context.Context
	space func() (volume.Space, error)
	// spaceAfterErase has it show what was erased.
	spaceAfterErase func(before volume.Space) (volume.Space, error)
	workers         *workers
	limits          lifespan.Limits
	interval        time.Duration
	retention       *actor.PID
	eraser          *actor.PID
	log             logr.Logger
	metrics         *metrics.Metrics

	measuring bool
	again     bool // asked for while measuring
	// afterDeletion: the next measurement is to show what a deletion freed.
	afterDeletion bool
	// noSpace: a call found no room since the last report, and nothing is being
	// erased that would make some.
	noSpace bool
	// asked is the number of the last question.
	asked uint64
	// last is what was measured last.
	last volume.Space
	// told is what was reported last.
	told  messages.Pressure
	timer *time.Timer
}

// bandInterval is the longest time between two measurements while there is pressure:
// a disk that is nearly full has to be watched closely, for the kubelet looks at it
// every ten seconds and evicts pods at once.
const bandInterval = time.Second

type measureDue struct{}

type measured struct {
	space volume.Space
	err   error
}

func pressureProps(p pressure) *actor.Props {
	p.told = messages.Pressure{Factor: 1, Scarcer: volume.ForBytes}
	return actor.PropsFromProducer(func() actor.Actor { copied := p; return &copied },
		actor.WithReceiverMiddleware(recovering(p.log)))
}

func (p *pressure) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.NoSpace:
		p.noSpace = p.noSpace || !m.Erasing
		p.measure(c)
	case *actor.Started, *measureDue, *messages.Measure:
		p.measure(c)
	case *measured:
		p.report(c, m)
	case *actor.Stopping:
		stopTimer(p.timer)
	default:
		ignoreLifecycle(p.log, c)
	}
}

// measure asks the kernel in a worker: statfs hangs when the disk does.
func (p *pressure) measure(c actor.Context) {
	if m, ok := c.Message().(*messages.Measure); ok {
		p.afterDeletion, p.asked = p.afterDeletion || m.Erased, m.Seq
	}
	if p.measuring {
		p.again = true
		return
	}
	p.measuring = true
	space := p.space
	if p.afterDeletion {
		after, before := p.spaceAfterErase, p.last
		space = func() (volume.Space, error) { return after(before) }
	}
	p.afterDeletion = false
	root, self := c.ActorSystem().Root, c.Self()
	err := p.workers.Go(func() {
		var m measured
		m.err = guard(p.log, func() (err error) {
			m.space, err = space()
			return err
		})
		root.Send(self, &m)
	})
	if err != nil {
		root.Send(self, &measured{err: err})
	}
}

func (p *pressure) report(c actor.Context, m *measured) {
	p.measuring = false
	if p.ctx.Err() != nil {
		return // the daemon is stopping, and nothing is to be concluded
	}
	if p.again { // what was measured is older than the question
		p.again = false
		p.measure(c)
		return
	}
	// Data is not thrown away early because of a disk that cannot be measured.
	told := &messages.Pressure{Factor: 1, Scarcer: p.told.Scarcer, NoSpace: p.noSpace, Seq: p.asked}
	if m.err != nil {
		p.log.Error(m.err, "cannot measure the working directory's file system, assuming no pressure")
		p.metrics.DiskNotMeasured()
	} else {
		p.take(m.space, told)
		if (told.Factor < 1) != (p.told.Factor < 1) {
			p.log.Info("disk pressure changed", "factor", told.Factor, "freeBytes", m.space.Free.Bytes, "totalBytes", m.space.Total.Bytes,
				"freeInodes", m.space.Free.Inodes, "totalInodes", m.space.Total.Inodes, "kubeletLine", p.limits.Line.String())
		}
	}
	p.log.V(1).Info("measured the disk", "factor", told.Factor, "freeBytes", m.space.Free.Bytes, "freeInodes", m.space.Free.Inodes)
	p.noSpace, p.told = false, *told
	c.Send(p.retention, told)
	c.Send(p.eraser, told)

	stopTimer(p.timer)
	wait := p.interval
	if told.Factor < 1 {
		wait = min(wait, bandInterval)
	}
	root, self := c.ActorSystem().Root, c.Self()
	p.timer = time.AfterFunc(wait, func() { root.Send(self, &measureDue{}) })
}

// take says what follows from a measurement.
func (p *pressure) take(measured volume.Space, told *messages.Pressure) {
	is := p.limits.Pressure(measured)
	p.last = measured
	told.Factor, told.Lacking, told.Scarcer = is.Factor, is.Lacking, volume.ForBytes
	if is.InodesAreScarcer {
		told.Scarcer = volume.ForInodes
	}
	p.metrics.DiskMeasured(is.Factor, measured, is.Line, is.Floor, is.Wanted)
}
