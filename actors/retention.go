package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// maxEvictions bounds the expired volumes that are deleted at the same time. A
// deletion mostly waits for its two records and for the trash to be synced, and
// shares each of these waits with all others: the more there are, the fewer syncs
// a burst takes. It is far below [maxWorkers], so that deletions on a disk that
// hangs leave the workers to the calls. How many are erased at the same time is up
// to the eraser.
const maxEvictions = 256

// retention holds the records of the retained volumes, which sleep, and one
// timer for the next of them that is due.
type retention struct {
	supervisor *actor.PID
	eraser     *actor.PID
	surveyor   *actor.PID
	metrics    *metrics.Metrics
	log        logr.Logger

	// began is when the daemon was started.
	began    time.Time
	queue    *lifespan.Queue
	factor   float64
	evicting map[volume.ID]struct{}
	// asking: the pressure actor was asked to measure, and has not answered. asked
	// is the number of the question.
	asking bool
	asked  uint64
	// early: volumes may go before their time is over. owed: the next one goes
	// whatever the factor is, because a call found no room. Free space that is too
	// little for a directory, or of the wrong kind, shows in no factor.
	early, owed bool
	// scarcer is the reason for those that go early.
	scarcer volume.Reason
	// fresh: the factor was measured after everything that was deleted before had
	// been erased. It allows one volume to go early.
	fresh bool
	// surveying: the surveyor was given volumes to measure, and has not said that it
	// is done.
	surveying bool
	// surveyed is when nothing was left to measure last.
	surveyed time.Time
	// timer, when set, ends the wait for the next volume that is due, at timerAt.
	timer   *time.Timer
	timerAt time.Time
	// collecting, when set, ends the wait for more to measure.
	collecting *time.Timer
}

type evictionDue struct{}

// surveyDue says that there has been time enough for more to measure to come.
type surveyDue struct{}

// retentionProps describes the retention actor, which takes the queue over. It is
// one instance for good.
func retentionProps(r retention, queue *lifespan.Queue) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		copied := r
		copied.began, copied.queue, copied.factor, copied.evicting = time.Now(), queue, 1, map[volume.ID]struct{}{}
		return &copied
	}, actor.WithReceiverMiddleware(recovering(r.log)))
}

func (r *retention) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Retain:
		r.queue.Push(m.Record)
	case *messages.Wake:
		r.wake(c, m)
		r.survey(c)
		return // nothing can be due that was not before
	case *messages.Surveyed:
		r.surveying = !m.Done
		for _, size := range m.Sizes {
			r.queue.Measured(size.ID, size.Unpublished, size.Bytes)
		}
		if m.Done && r.queue.Unmeasured() == 0 {
			r.surveyed = time.Now()
		}
		r.survey(c)
		return
	case *surveyDue:
		r.collecting = nil
		r.survey(c)
		return
	case *messages.FindUnknown:
		r.findUnknown(m)
		return
	case *messages.Pressure:
		r.factor, r.scarcer = m.Factor, m.Scarcer
		r.owed = r.owed || m.NoSpace && r.early
		if r.asking && m.Seq == r.asked {
			r.asking, r.fresh = false, true
		}
	case *messages.EvictionOver:
		delete(r.evicting, m.ID)
	case *evictionDue:
		// This tick may be of an earlier timer: each that is left running would go on
		// for good, and they would become more and more.
		stopTimer(r.timer)
		r.timer = nil
	case *actor.Started:
	case *actor.Stopping:
		stopTimer(r.timer)
		stopTimer(r.collecting)
		if err := r.queue.Close(); err != nil {
			r.log.Error(err, "cannot give back the memory of the retained volumes")
		}
		return
	default:
		ignoreLifecycle(r.log, c)
		return
	}
	r.evict(c)
	r.survey(c)
}

func (r *retention) wake(c actor.Context, m *messages.Wake) {
	answer := &messages.Woken{ID: m.ID, Seq: m.Seq}
	if record, ok := r.queue.Take(m.ID); ok {
		answer.Record = &record
	}
	c.Send(r.supervisor, answer)
}

func (r *retention) findUnknown(m *messages.FindUnknown) {
	var unknown []messages.DataDirectory
	for _, dir := range m.Directories {
		if _, evicting := r.evicting[dir.ID]; !evicting && !r.queue.Has(dir.Pod, dir.ID) {
			unknown = append(unknown, dir)
		}
	}
	m.Send(unknown, nil)
}

// survey has the next volumes measured of those that have not been, and tells how
// much the others take.
func (r *retention) survey(c actor.Context) {
	r.metrics.RetainedBytes(uint64(r.queue.Bytes()))
	r.metrics.RetainedUnmeasured(r.queue.Unmeasured())
	if r.surveying || r.queue.Unmeasured() == 0 {
		return
	}
	if wait := surveyCollects - time.Since(r.surveyed); wait > 0 && r.queue.Unmeasured() < surveyRound {
		r.collect(c, wait)
		return
	}
	r.surveying = true
	c.Send(r.surveyor, r.nextSurvey())
}

// nextSurvey is for the volumes that come next: those that were retained just now,
// and when there are none, more at a time of those that the start has found.
func (r *retention) nextSurvey() *messages.Survey {
	m := &messages.Survey{Volumes: make([]messages.ToMeasure, 0, surveyRound)}
	for next := range r.queue.NextUnmeasured(backlogRound) {
		backlog := next.Unpublished.Before(r.began)
		if len(m.Volumes) == 0 {
			m.Backlog = backlog
		}
		if backlog != m.Backlog || !backlog && len(m.Volumes) == surveyRound {
			break
		}
		m.Volumes = append(m.Volumes, messages.ToMeasure(next))
	}
	return m
}

// collect comes back to survey when there may be more to measure.
func (r *retention) collect(c actor.Context, wait time.Duration) {
	if r.collecting == nil {
		root, self := c.ActorSystem().Root, c.Self()
		r.collecting = time.AfterFunc(wait, func() { root.Send(self, &surveyDue{}) })
	}
}

// measure asks how much space there is once what was deleted is erased. That is
// erased first, before anything goes early.
func (r *retention) measure(c actor.Context) {
	if r.asking {
		return
	}
	r.asking = true
	r.asked++
	c.Send(r.eraser, &messages.Measure{Seq: r.asked})
}

// evict has every volume deleted whose time is over, and under pressure the
// next one whose shortened time is over; then it sets the timer.
func (r *retention) evict(c actor.Context) {
	now := time.Now()
	for {
		// What has expired on its own goes first: that room costs nobody anything.
		factor := 1.0
		due, ok := r.queue.Next(factor)
		if !ok {
			r.owed = false // nobody is left to make room
			return
		}
		expired := !due.After(now)
		if !expired {
			factor = r.effective()
			due, _ = r.queue.Next(factor)
		}
		switch {
		case due.After(now):
			r.wakeUpAt(c, due)
			return
		case expired && len(r.evicting) >= maxEvictions:
			return // the end of an eviction comes back here
		case !expired && len(r.evicting) > 0:
			return // likewise: one at a time, and measured before each
		case !expired && !r.fresh:
			r.measure(c)
			return // the answer comes back here
		}
		// An answer that is still to come does not know of this one.
		r.fresh, r.owed, r.asking = false, false, false
		record, _ := r.queue.TakeNext(factor)
		r.start(c, record, r.reason(expired))
	}
}

// effective is the pressure factor to go by.
func (r *retention) effective() float64 {
	if r.owed {
		return 0
	}
	return r.factor
}

func (r *retention) reason(expired bool) volume.Reason {
	if expired {
		return volume.Expired
	}
	return r.scarcer
}

func (r *retention) start(c actor.Context, record volume.Record, reason volume.Reason) {
	r.evicting[record.ID] = struct{}{}
	c.Send(r.supervisor, &messages.Evict{Record: record, Reason: reason})
}

// wakeUpAt sets the timer. Most volumes that go to sleep are not due next, and leave
// it as it is.
func (r *retention) wakeUpAt(c actor.Context, due time.Time) {
	if r.timer != nil && r.timerAt.Equal(due) {
		return
	}
	stopTimer(r.timer)
	root, self := c.ActorSystem().Root, c.Self()
	r.timer, r.timerAt = time.AfterFunc(time.Until(due), func() { root.Send(self, &evictionDue{}) }), due
}
