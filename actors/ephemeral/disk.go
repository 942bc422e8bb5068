package ephemeral

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// bandInterval is the longest time between two measurements while there is pressure: a disk that is
// nearly full has to be watched closely, because the kubelet looks at it every ten seconds and
// evicts pods at once.
const bandInterval = time.Second

// disk owns the working directory's file system: it erases what lies in the trash, measures how
// much room there is, and tells the supervisor. A question is answered with a measurement that
// shows all that was deleted before.
type disk struct {
	eraser
	supervisor *actor.PID

	measuring bool
	// again: the measurement that runs began before the last question.
	again bool
	// answers: the next measurement answers the supervisor's question. afterErase: something was
	// erased since the last one. counted is what had been removed at the last question.
	answers, afterErase bool
	counted             int64
	// noSpace: an operation found no room since the last report, and nothing is being erased that
	// would make some.
	noSpace bool
	// last is what was measured last, reported what the supervisor was sent last.
	last     volume.Space
	reported messages.Pressure
	timer    *time.Timer
}

type measureDue struct{}

type measured struct {
	space volume.Space
	err   error
}

func (d *disk) props() *actor.Props {
	d.reported = messages.Pressure{Factor: 1, Scarcer: volume.ForBytes}
	return actor.PropsFromFunc(d.Receive, actor.WithReceiverMiddleware(actors.Recovering(d.Log)))
}

func (d *disk) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		root, self := c.ActorSystem().Root, c.Self()
		d.start(func(m any) { root.Send(self, m) })
		d.measure()
	case *messages.Erase:
		d.queue.delete(m.Name, m.Volume)
	case *messages.MeasureDisk:
		d.queue.ask(time.Now())
	case *messages.NoSpace:
		d.noSpace = d.noSpace || !d.makesRoom()
		d.measure()
		return
	case *measureDue:
		d.measure()
		return
	case *measured:
		d.report(c, m)
		return
	case *somethingDue:
		d.alarm, d.alarmAt = nil, time.Time{}
	case *listed:
		d.listed(m)
	case *erased:
		d.erased(m)
	case *progressDue:
		d.logProgress()
	case *actor.Stopping:
		actors.StopTimer(d.timer)
		d.stop()
		return
	default:
		actors.IgnoreLifecycle(d.Log, c)
		return
	}
	if d.ctx.Err() == nil && d.advance(time.Now()) {
		removed := d.turns.Removed()
		d.answers, d.afterErase = true, d.afterErase || removed > d.counted
		d.counted = removed
		d.measure()
	}
}

// measure asks the kernel in a worker: statfs hangs when the disk does.
func (d *disk) measure() {
	if d.measuring {
		d.again = true
		return
	}
	d.measuring = true
	afterErase, before := d.afterErase, d.last
	d.afterErase = false
	var m measured
	d.run(func() (err error) {
		if afterErase {
			m.space, err = d.SpaceAfterErase(before)
		} else {
			m.space, err = d.Space()
		}
		return err
	}, func(err error) any { m.err = err; return &m })
}

func (d *disk) report(c actor.Context, m *measured) {
	d.measuring = false
	if d.ctx.Err() != nil {
		return // the daemon is stopping, and nothing is to be concluded
	}
	if d.again {
		d.again = false
		d.measure()
		return
	}
	// Data is not thrown away early because of a disk that cannot be measured.
	pressure := &messages.Pressure{Factor: 1, Scarcer: d.reported.Scarcer, NoSpace: d.noSpace, Answers: d.answers}
	if m.err != nil {
		d.Log.Error(m.err, "cannot measure the working directory's file system, assuming no pressure")
		d.Metrics.DiskNotMeasured()
	} else {
		is := d.Limits.Pressure(m.space)
		pressure.Factor, pressure.Lacking, pressure.Short, pressure.Scarcer = is.Factor, is.Lacking, is.Short, volume.ForBytes
		if is.InodesAreScarcer {
			pressure.Scarcer = volume.ForInodes
		}
		pressure.Total = m.space.Total.Bytes
		d.last = m.space
		d.Metrics.DiskMeasured(is.Factor, m.space, is.Line, is.Floor, is.Wanted)
		if (pressure.Factor < 1) != (d.reported.Factor < 1) {
			d.Log.Info("disk pressure changed", "factor", pressure.Factor, "freeBytes", m.space.Free.Bytes, "totalBytes", m.space.Total.Bytes,
				"freeInodes", m.space.Free.Inodes, "totalInodes", m.space.Total.Inodes, "kubeletLine", d.Limits.Line.String())
		}
	}
	d.Log.V(1).Info("measured the disk", "factor", pressure.Factor, "freeBytes", m.space.Free.Bytes, "freeInodes", m.space.Free.Inodes)
	d.noSpace, d.answers, d.reported = false, false, *pressure
	d.turns.SetPressure(pressure.Factor)
	c.Send(d.supervisor, pressure)

	actors.StopTimer(d.timer)
	wait := d.PressureInterval
	if pressure.Factor < 1 {
		wait = min(wait, bandInterval)
	}
	d.timer = time.AfterFunc(wait, func() { d.send(&measureDue{}) })
}
