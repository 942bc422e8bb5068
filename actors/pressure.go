package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// pressure watches how full the working directory's file system is and tells
// the retention actor.
type pressure struct {
	ctx   context.Context
	space func() (scratch.Space, error)
	// spaceAfterErase has it show what was erased.
	spaceAfterErase func(before scratch.Space) (scratch.Space, error)
	workers         *workers
	headroom        float64
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
	last scratch.Space
	// scarcer is what there was less of then.
	scarcer volume.Reason
	factor  float64
	timer   *time.Timer
}

type measureDue struct{}

type measured struct {
	space scratch.Space
	err   error
}

func pressureProps(p pressure) *actor.Props {
	p.factor, p.scarcer = 1, volume.ForBytes
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
		space = func() (scratch.Space, error) { return after(before) }
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
	factor := 1.0
	if m.err != nil {
		// Data is not thrown away early because of a disk that cannot be measured.
		p.log.Error(m.err, "cannot measure the working directory's file system, assuming no pressure")
		p.metrics.DiskNotMeasured()
	} else {
		factor = p.take(m.space)
		if (factor < 1) != (p.factor < 1) {
			p.log.Info("disk pressure changed", "factor", factor, "freeBytes", m.space.FreeBytes, "totalBytes", m.space.Bytes,
				"freeInodes", m.space.FreeInodes, "totalInodes", m.space.Inodes)
		}
	}
	p.log.V(1).Info("measured the disk", "factor", factor, "freeBytes", m.space.FreeBytes, "freeInodes", m.space.FreeInodes)
	p.factor = factor
	told := &messages.Pressure{Factor: factor, Scarcer: p.scarcer, NoSpace: p.noSpace, Seq: p.asked}
	p.noSpace = false
	c.Send(p.retention, told)
	c.Send(p.eraser, told)

	stopTimer(p.timer)
	root, self := c.ActorSystem().Root, c.Self()
	p.timer = time.AfterFunc(p.interval, func() { root.Send(self, &measureDue{}) })
}

// take takes over what was measured and returns the pressure factor.
func (p *pressure) take(measured scratch.Space) float64 {
	bytes := lifespan.Space{Total: measured.Bytes, Free: measured.FreeBytes}
	inodes := lifespan.Space{Total: measured.Inodes, Free: measured.FreeInodes}
	factor := lifespan.Factor(p.headroom, bytes, inodes)
	p.last, p.scarcer = measured, volume.ForBytes
	if lifespan.InodesAreScarcer(bytes, inodes) {
		p.scarcer = volume.ForInodes
	}
	p.metrics.DiskMeasured(factor,
		metrics.Space{Total: bytes.Total, Free: bytes.Free, Headroom: bytes.Wanted(p.headroom)},
		metrics.Space{Total: inodes.Total, Free: inodes.Free, Headroom: inodes.Wanted(p.headroom)})
	return factor
}
