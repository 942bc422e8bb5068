package ephemeral

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// tellInterval is the longest time between two measurements that the supervisor is told, while there
// is pressure.
const tellInterval = time.Second

// disk owns the working directory's file system: it erases what lies in the trash, measures how
// much room there is, and tells the supervisor. A question is answered with a measurement that
// shows all that was deleted before.
//
// It measures in two ways. A look asks the kernel what is free, and comes the more often the sooner
// the disk may be full. After an erasure it makes the kernel count what came free; that may take
// long, and looks go on meanwhile.
type disk struct {
	eraser
	supervisor *actor.PID

	looking, settling bool
	// again: the look that runs began before an operation found no room. settleAgain: the same of a
	// measurement and what was erased.
	again, settleAgain bool
	// begun counts the measurements, newest is the number of the newest one that was reported.
	begun, newest int64
	// answers: the next measurement after an erasure answers the supervisor's question. freed are
	// the volumes that it shows for the first time. counted is what had been removed at the last one.
	answers bool
	freed   []volume.ID
	counted int64
	// noSpace: an operation found no room since the last report, and nothing is being erased that
	// would make some.
	noSpace bool
	// last is what was measured last, filling how fast that fills up. rose is how much more was free at
	// some measurements than at those before, gained what erasures have seen come free; both since the
	// last report.
	last    volume.Space
	filling lifespan.Filling
	// below is how fast the disk below a quota fills up, where there is one.
	below        lifespan.Filling
	rose, gained volume.Size
	// reported is what the supervisor was sent last, reportedAt when, reportedOf what was measured.
	reported   messages.Pressure
	reportedAt time.Time
	reportedOf volume.Space
	timer      *time.Timer
}

type measureDue struct{}

// measured is what a measurement found.
type measured struct {
	number int64
	space  volume.Space
	err    error
	// settled: it came after an erasure, and shows what these volumes took.
	settled bool
	erased  []volume.ID
	answers bool
}

func (d *disk) props() *actor.Props {
	d.reported = messages.Pressure{Factor: 1, Scarcer: volume.ForBytes}
	return actor.PropsFromFunc(d.Receive, actor.WithReceiverMiddleware(actors.Recovering(d.Log)))
}

func (d *disk) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		root, self := c.ActorSystem().Root, c.Self()
		d.over = d.shows
		d.start(func(m any) { root.Send(self, m) })
		d.look()
	case *messages.Erase:
		d.queue.delete(m.Name, m.Volume)
	case *messages.MeasureDisk:
		d.queue.ask(time.Now())
	case *messages.NoSpace:
		d.noSpace = d.noSpace || !d.makesRoom()
		d.again = d.looking
		d.look()
		return
	case *measureDue:
		d.look()
		return
	case *measured:
		d.measured(c, m)
		return
	case *somethingDue:
		d.alarm, d.alarmAt = nil, time.Time{}
	case *listed:
		d.listed(m)
	case *erased:
		d.gained = d.gained.Add(m.gained)
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
	if d.ctx.Err() != nil {
		return // the daemon is stopping
	}
	d.answers = d.advance(time.Now()) || d.answers
	if d.answers || len(d.freed) > 0 && d.reported.Factor < 1 {
		d.settle()
	}
}

// shows notes that the next measurement shows what a volume took; it has no ID if an earlier process
// deleted it.
func (d *disk) shows(id volume.ID) {
	if id != "" {
		d.freed = append(d.freed, id)
	}
}

// look asks the kernel in a worker: statfs hangs when the disk does. Without pressure a look also
// shows what was erased before.
func (d *disk) look() {
	if d.looking {
		return
	}
	d.looking = true
	m := d.measurement()
	if d.reported.Factor >= 1 {
		m.erased, d.freed = d.freed, nil
	}
	d.run(func() (err error) {
		m.space, err = d.Space()
		return err
	}, func(err error) any { m.err = err; return m })
}

// settle measures what is free once the kernel has counted all that was erased before.
func (d *disk) settle() {
	if d.settling {
		d.settleAgain = true
		return
	}
	d.settling = true
	m := d.measurement()
	m.settled = true
	m.answers, d.answers = d.answers, false
	m.erased, d.freed = d.freed, nil
	removed, before := d.turns.Removed(), d.last
	afterErase := removed > d.counted
	d.counted = removed
	d.run(func() (err error) {
		if afterErase {
			m.space, err = d.SpaceAfterErase(before)
		} else {
			m.space, err = d.Space()
		}
		return err
	}, func(err error) any { m.err = err; return m })
}

func (d *disk) measurement() *measured {
	d.begun++
	return &measured{number: d.begun}
}

// measured takes a measurement over.
func (d *disk) measured(c actor.Context, m *measured) {
	again := false
	if m.settled {
		d.settling = false
		again, d.settleAgain = d.settleAgain, false
	} else {
		d.looking = false
	}
	if d.ctx.Err() != nil {
		return // the daemon is stopping, and nothing is to be concluded
	}
	switch {
	case again:
		// Later erasures go with the next one; what this one has to say does not wait.
		defer d.settle()
	case d.again && !m.settled:
		d.again = false
		d.freed = append(d.freed, m.erased...)
		d.look()
		return
	}
	if m.number < d.newest && m.err == nil {
		m.space = d.last // a measurement that began later was faster
	} else {
		d.newest = m.number
	}
	d.report(c, m)
	if m.settled && d.looking {
		return // that look sets the timer
	}
	actors.StopTimer(d.timer)
	d.timer = time.AfterFunc(d.nextLook(m), func() { d.send(&measureDue{}) })
}

// speed is how much is written in a second, by pods or, on the disk below a quota, by others too.
func (d *disk) speed() volume.Size { return d.filling.Speed().Max(d.below.Speed()) }

// nextLook returns how long the disk need not be looked at.
func (d *disk) nextLook(m *measured) time.Duration {
	if m.err != nil {
		return d.PressureInterval
	}
	return d.Limits.NextLook(d.last, d.speed(), d.PressureInterval)
}

// report tells the supervisor what was measured, if it has to know.
func (d *disk) report(c actor.Context, m *measured) {
	now := time.Now()
	// Data is not thrown away early because of a disk that cannot be measured.
	pressure := &messages.Pressure{Factor: 1, Scarcer: d.reported.Scarcer, NoSpace: d.noSpace, Answers: m.answers, Erased: m.erased}
	if m.err != nil {
		d.Log.Error(m.err, "cannot measure the working directory's file system, assuming no pressure")
		d.Metrics.DiskNotMeasured()
	} else {
		d.filling.Saw(now, m.space.Free)
		d.below.Saw(now, m.space.DiskFree)
		if d.last.Total != (volume.Size{}) {
			d.rose = d.rose.Add(more(d.last.Free, m.space.Free))
		}
		d.last = m.space
		pressure.Came = d.rose.Max(d.gained)
		is := d.Limits.Pressure(m.space, d.Limits.Burst.Soon(d.speed()))
		pressure.Factor, pressure.Lacking, pressure.Short, pressure.Scarcer = is.Factor, is.Lacking, is.Short, volume.ForBytes
		if is.InodesAreScarcer {
			pressure.Scarcer = volume.ForInodes
		}
		pressure.Total = m.space.Total.Bytes
		if !d.worthTelling(pressure, now) {
			return
		}
		d.reportedOf = m.space
		d.Metrics.DiskMeasured(is.Factor, is.Of, is.Line, is.Floor, is.Wanted)
		if (pressure.Factor < 1) != (d.reported.Factor < 1) {
			d.Log.Info("disk pressure changed", "factor", pressure.Factor, "freeBytes", is.Of.Free.Bytes, "totalBytes", is.Of.Total.Bytes,
				"freeInodes", is.Of.Free.Inodes, "totalInodes", is.Of.Total.Inodes, "kubeletLine", d.Limits.Line.String())
		}
	}
	d.Log.V(1).Info("measured the disk", "factor", pressure.Factor, "freeBytes", m.space.Free.Bytes, "freeInodes", m.space.Free.Inodes)
	d.noSpace, d.reported, d.reportedAt = false, *pressure, now
	d.rose, d.gained = volume.Size{}, volume.Size{}
	d.reported.Erased = nil
	d.turns.SetPressure(pressure.Factor)
	c.Send(d.supervisor, pressure)
}

// more is by how much a size is larger than one before.
func more(before, after volume.Size) volume.Size {
	return volume.Size{Bytes: max(after.Bytes-before.Bytes, 0), Inodes: max(after.Inodes-before.Inodes, 0)}
}

// worthTelling reports whether the supervisor has to know a measurement now. Of a disk that is nearly
// full there may be a hundred looks in a second.
func (d *disk) worthTelling(p *messages.Pressure, now time.Time) bool {
	interval := d.PressureInterval
	if p.Factor < 1 {
		interval = min(interval, tellInterval)
	}
	return p.Answers || p.NoSpace || len(p.Erased) > 0 || (p.Factor < 1) != (d.reported.Factor < 1) ||
		p.Factor < 1 && d.last != d.reportedOf || now.Sub(d.reportedAt) >= interval
}
