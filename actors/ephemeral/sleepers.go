package ephemeral

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/retained"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// maxEvictions bounds the volumes that are deleted at the same time. A deletion mostly waits
	// for its two records and for the trash to be synced, and shares each of these waits with all
	// others: the more there are, the fewer syncs a burst takes. At most a quarter of the workers
	// delete, so that deletions that wait leave the others to the calls. The disk actor decides how
	// many volumes are erased at the same time.
	maxEvictions = 256
	// evictionSlice is how many deletions begin in a row: each takes some 20 µs, and calls wait for
	// the supervisor meanwhile.
	evictionSlice = 32
	// failedInterval is the time between two lines about volumes that cannot be deleted. When the
	// disk fails, none can be.
	failedInterval = time.Minute
)

// evictionsWithin is how many volumes may be deleted at the same time by a number of workers.
func evictionsWithin(workers int) int { return min(maxEvictions, max(workers/4, 1)) }

// sleepers are the retained volumes: they have no actor. It knows which of them go next, and which
// are on their way.
type sleepers struct {
	metrics *metrics.Metrics
	log     logr.Logger
	// evict wakes a volume to be deleted, measure asks the disk, survey asks for sizes, and tick
	// comes back as a message.
	evict   func(volume.Record, *messages.DeleteVolume)
	measure func()
	survey  func(*messages.Survey)
	tick    func(any)

	queue *retained.Queue
	// atOnce is how many volumes may be deleted at the same time, evicting are those that are, and
	// retrying counts those of them that could not be deleted before.
	atOnce   int
	evicting map[volume.ID]retained.Asleep
	retrying int
	// making is how much room is on its way, and whether that is enough.
	making lifespan.Making
	// asking: the disk was asked to measure, and has not answered.
	asking bool
	// early: volumes may go before their lifespan is over. owed: the next one goes whatever the
	// factor is, because an operation found no room. Free space that is too little for a directory,
	// or of the wrong kind, shows in no factor.
	early, owed bool
	// factor is the pressure factor, scarcer the reason for volumes that go early.
	factor  float64
	scarcer volume.Reason
	// failed limits the lines about volumes that cannot be deleted.
	failed *lineLimit
	// timer, when set, ends the wait for the next volume that is due, at timerAt.
	timer   *time.Timer
	timerAt time.Time
	sizing  sizing
}

// evictionDue says that a volume may be due.
type evictionDue struct{}

// newSleepers takes the queue over.
func newSleepers(queue *retained.Queue, atOnce int, early bool, m *metrics.Metrics, log logr.Logger) *sleepers {
	return &sleepers{
		metrics: m, log: log, queue: queue, atOnce: atOnce, early: early, factor: 1, evicting: map[volume.ID]retained.Asleep{},
		making: lifespan.NewMaking(), failed: newLineLimit(1, failedInterval), sizing: sizing{began: time.Now()},
	}
}

// take hands the record of a volume over that does not sleep any more; nil when none is known.
func (s *sleepers) take(id volume.ID) *volume.Record {
	taken, ok := s.queue.Take(id)
	if !ok {
		return nil
	}
	s.tellMetrics()
	return &taken.Record
}

// add takes a volume that went to sleep. One that could not be deleted is tried again after a while.
func (s *sleepers) add(r resting) {
	if r.failed == nil {
		s.queue.Push(*r.record)
	} else {
		if r.tries == 1 {
			s.logFailed(r)
		}
		s.queue.Postpone(*r.record, time.Now().Add(deleteBackoff.After(r.tries)), r.tries)
	}
	s.goOn()
}

func (s *sleepers) logFailed(r resting) {
	about := func(more ...any) []any {
		return logkeys.About(*r.record, append(more, logkeys.Phase, r.record.Phase.String())...)
	}
	s.failed.write(func() {
		s.log.Error(r.failed, "a volume cannot be deleted, trying again until it can", about()...)
	}, func(more int) {
		s.log.Error(r.failed, "more volumes cannot be deleted, trying again until they can; this is one of them", about("volumes", more)...)
	})
}

// has tells whether a volume sleeps whose data is at that place.
func (s *sleepers) has(p volume.Place) bool { return s.queue.Has(p) }

// ended notes that the deletion of a volume has ended, if it was ordered, and whether it succeeded.
func (s *sleepers) ended(id volume.ID, deleted bool) {
	was, ok := s.evicting[id]
	if !ok {
		return
	}
	delete(s.evicting, id)
	s.making.End(was.Size, deleted)
	if was.Tries > 0 {
		s.retrying--
	}
	s.goOn()
}

// pressure takes a measurement over.
func (s *sleepers) pressure(m *messages.Pressure) {
	s.factor, s.scarcer = m.Factor, m.Scarcer
	s.owed = s.owed || m.NoSpace && s.early
	s.asking = s.asking && !m.Answers
	s.making.Measured(m.Lacking, m.Answers)
	s.goOn()
}

// due is called for evictionDue.
func (s *sleepers) due() {
	// The tick may be of an earlier timer. A second one that is left running would go on for good,
	// and there would be more and more.
	actors.StopTimer(s.timer)
	s.timer = nil
	s.goOn()
}

// goOn lets the volumes go that are due, and sets the timer for the next one.
func (s *sleepers) goOn() {
	for range evictionSlice {
		now := time.Now()
		retry, _ := s.queue.Resume(now)
		step := next(outlook{
			now: now, deadline: s.queue.Next, factor: s.effective(), mayGoEarly: s.making.Settled() || s.making.Lacks(),
			full: len(s.evicting) >= s.atOnce, retry: retry,
		})
		if !step.evict {
			s.owed = s.owed && !step.none
			if step.measure {
				s.ask()
			}
			s.wakeUpAt(step.at)
			s.tellMetrics()
			return
		}
		s.owed = false
		s.start(step)
	}
	s.tick(&evictionDue{})
	s.tellMetrics()
}

// effective is the pressure factor to go by.
func (s *sleepers) effective() float64 {
	if s.owed {
		return 0
	}
	return s.factor
}

// start orders the deletion of the volume that a step is about.
func (s *sleepers) start(step step) {
	chosen, _ := s.queue.TakeNext(step.factor)
	reason := s.scarcer
	if step.expired {
		reason = volume.Expired
	}
	s.evicting[chosen.ID] = chosen
	if chosen.Tries > 0 {
		s.retrying++
	}
	s.making.Begin(chosen.Size)
	s.evict(chosen.Record, &messages.DeleteVolume{Reason: reason, Factor: step.factor, Tries: chosen.Tries})
}

// ask asks how much space there is once the data of deleted volumes is erased. That is erased
// before anything goes early.
func (s *sleepers) ask() {
	if s.asking || len(s.evicting) > 0 && !s.making.Unshown() {
		return // the answer, or the end of an eviction, comes back to goOn
	}
	s.asking = true
	s.making.Ask()
	s.measure()
}

// wakeUpAt sets the timer; a zero time leaves it. Most volumes that go to sleep are not due next
// and leave it too.
func (s *sleepers) wakeUpAt(due time.Time) {
	if due.IsZero() || s.timer != nil && s.timerAt.Equal(due) {
		return
	}
	actors.StopTimer(s.timer)
	s.timer, s.timerAt = time.AfterFunc(time.Until(due), func() { s.tick(&evictionDue{}) }), due
}

func (s *sleepers) tellMetrics() {
	s.metrics.DeletionsFailing(s.queue.Waiting() + s.retrying)
	s.metrics.RetainedBytes(uint64(s.queue.Bytes()))
	s.metrics.RetainedUnmeasured(s.queue.Unmeasured())
	s.goOnSizing()
}

// stop stops all timers.
func (s *sleepers) stop() {
	actors.StopTimer(s.timer)
	actors.StopTimer(s.sizing.timer)
	s.failed.flush()
}
