package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/retained"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// maxEvictions bounds the volumes that are deleted at the same time. A
// deletion mostly waits for its two records and for the trash to be synced, and
// shares each of these waits with all others: the more there are, the fewer syncs
// a burst takes. At most a quarter of the workers delete, so that deletions that wait
// leave the others to the calls. How many are erased at the same time is up
// to the eraser.
const maxEvictions = 256

// evictionsWithin is how many volumes may be deleted at the same time by a number of
// workers.
func evictionsWithin(workers int) int { return min(maxEvictions, max(workers/4, 1)) }

// retention holds the records of the retained volumes, which sleep, and one
// timer for the next of them that is due.
type retention struct {
	supervisor *actor.PID
	eraser     *actor.PID
	surveyor   *actor.PID
	metrics    *metrics.Metrics
	log        logr.Logger

	// atOnce is how many volumes may be deleted at the same time.
	atOnce int
	// began is when the daemon was started.
	began    time.Time
	queue    *retained.Queue
	factor   float64
	evicting map[volume.ID]retained.Asleep
	// retrying are those of them that could not be deleted before.
	retrying int
	// making is how much room is on its way, and whether that is enough.
	making lifespan.Making
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
	// failures tells the log of volumes that cannot be deleted.
	failures failures
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
func retentionProps(r retention, queue *retained.Queue) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		copied := r
		copied.began, copied.queue, copied.factor, copied.evicting = time.Now(), queue, 1, map[volume.ID]retained.Asleep{}
		copied.making = lifespan.NewMaking()
		return &copied
	}, actor.WithReceiverMiddleware(recovering(r.log)))
}

func (r *retention) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Retain:
		r.retain(c, m)
	case *messages.Wake:
		r.wake(c, m)
		r.metrics.DeletionsFailing(r.queue.Waiting() + r.retrying)
		r.survey(c)
		return // nothing can be due that was not before
	case *messages.Surveyed:
		r.surveying = !m.Done
		for _, size := range m.Sizes {
			r.queue.Measured(size.ID, size.Unpublished, size.Takes)
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
		answer := r.asking && m.Seq == r.asked
		r.asking = r.asking && !answer
		r.making.Measured(m.Lacking, answer)
	case *messages.EvictionOver:
		r.evicted(m)
	case *failuresDue:
		r.failures.due(r.log)
		return
	case *evictionDue:
		// This tick may be of an earlier timer: each that is left running would go on
		// for good, and they would become more and more.
		stopTimer(r.timer)
		r.timer = nil
	case *actor.Started:
	case *actor.Stopping:
		stopTimer(r.timer)
		stopTimer(r.collecting)
		stopTimer(r.failures.timer)
		return
	default:
		ignoreLifecycle(r.log, c)
		return
	}
	r.evict(c)
	r.metrics.DeletionsFailing(r.queue.Waiting() + r.retrying)
	r.survey(c)
}

func (r *retention) wake(c actor.Context, m *messages.Wake) {
	answer := &messages.Woken{ID: m.ID, Seq: m.Seq}
	if taken, ok := r.queue.Take(m.ID); ok {
		answer.Record = &taken.Record
	}
	c.Send(r.supervisor, answer)
}

// retain takes a volume that went to sleep. One that could not be deleted is tried
// again after a while.
func (r *retention) retain(c actor.Context, m *messages.Retain) {
	if m.Failed == nil {
		r.queue.Push(m.Record)
		return
	}
	if m.Tries == 1 {
		r.failures.add(c, r.log, m)
	}
	r.queue.Postpone(m.Record, time.Now().Add(deleteBackoff.after(m.Tries)), m.Tries)
}

// evicted notes that a deletion has ended.
func (r *retention) evicted(m *messages.EvictionOver) {
	was, ok := r.evicting[m.ID]
	if !ok {
		return
	}
	delete(r.evicting, m.ID)
	r.making.End(was.Size, m.Deleted)
	if was.Tries > 0 {
		r.retrying--
	}
}

func (r *retention) findUnknown(m *messages.FindUnknown) {
	var unknown []volume.Place
	for _, dir := range m.Places {
		if _, evicting := r.evicting[dir.ID]; !evicting && !r.queue.Has(dir) {
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
		m.Volumes = append(m.Volumes, messages.ToMeasure{Record: next})
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
	if r.asking || len(r.evicting) > 0 && !r.making.Unshown() {
		return // the answer, or the end of an eviction, comes back here
	}
	r.asking = true
	r.asked++
	r.making.Ask()
	c.Send(r.eraser, &messages.Measure{Seq: r.asked})
}

// evict has every volume deleted whose time is over, and under pressure the oldest
// ones, as many as are needed; then it sets the timer.
func (r *retention) evict(c actor.Context) {
	now := time.Now()
	resumed, waiting := r.queue.Resume(now)
	for {
		// What has expired on its own goes first: that room costs nobody anything.
		factor := 1.0
		due, ok := r.queue.Next(factor)
		if !ok {
			r.owed = false // nobody is left to make room
			if waiting {
				r.wakeUpAt(c, resumed)
			}
			return
		}
		expired := !due.After(now)
		if !expired {
			factor = r.effective()
			due, _ = r.queue.Next(factor)
		}
		switch {
		case due.After(now):
			if waiting && resumed.Before(due) {
				due = resumed
			}
			r.wakeUpAt(c, due)
			return
		case len(r.evicting) >= r.atOnce:
			return // the end of an eviction comes back here
		case !expired && !r.making.Settled() && !r.making.Lacks():
			r.measure(c)
			return // the answer comes back here
		}
		r.owed = false
		next, _ := r.queue.TakeNext(factor)
		r.start(c, next, &messages.Evict{Record: next.Record, Reason: r.reason(expired), Factor: factor, Tries: next.Tries})
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

func (r *retention) start(c actor.Context, next retained.Asleep, m *messages.Evict) {
	r.evicting[next.ID] = next
	if next.Tries > 0 {
		r.retrying++
	}
	r.making.Begin(next.Size)
	c.Send(r.supervisor, m)
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
