package ephemeral

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/messages"
)

const (
	// maxDeletions bounds the volumes that are deleted at the same time. A deletion mostly waits
	// for its two records and for the trash to be synced, and shares each of these waits with all
	// others: the more there are, the fewer syncs a burst takes. At most a quarter of the workers
	// delete, so that deletions that wait leave the others to the calls. The disk actor decides how
	// many volumes are erased at the same time.
	maxDeletions = 256
	// deletionSlice is how many deletions begin in a row: each takes some 20 µs, and calls wait for
	// the supervisor meanwhile.
	deletionSlice = 32
	// failedInterval is the time between two lines about volumes that cannot be deleted. When the
	// disk fails, none can be.
	failedInterval = time.Minute
)

// deletionsWithin is how many volumes may be deleted at the same time by a number of workers.
func deletionsWithin(workers int) int { return min(maxDeletions, max(workers/4, 1)) }

// retention lets each retained volume expire at its deadline, or go early under pressure, and asks for the sizes
// that are not known.
type retention struct {
	// ctx ends when the daemon stops: no deletion begins then.
	ctx     context.Context
	metrics *metrics.Metrics
	log     logr.Logger
	// delete wakes a volume with the order, measureDisk and measureSizes ask, and tick sends a message
	// to the supervisor itself.
	delete       func(retained.Known, *messages.DeleteVolume)
	measureDisk  func()
	measureSizes func(*messages.MeasureSizes)
	tick         func(any)

	index *retained.Index
	// atOnce is how many volumes may be deleted at the same time, deleting are those that are, and whether they could
	// not be deleted before, as retrying of them.
	atOnce   int
	deleting map[volume.ID]bool
	retrying int
	// making is how much room is on its way, and whether that is enough. stopped is since when it
	// makes none.
	making  lifespan.Making
	stopped stopped
	// asking: the disk was asked to measure, and has not answered.
	asking bool
	// early: volumes may go before their lifespan is over. owed: the next one goes whatever the
	// factor is, because an operation found no room. Free space that is too little for a directory,
	// or of the wrong kind, shows in no factor. No guaranteed volume goes for that.
	early, owed bool
	// factor is the pressure factor, scarcer the reason for volumes that go early.
	factor  float64
	scarcer volume.Reason
	// endsCopies: a tick is on its way for the volumes whose copies in the archive may have ended.
	endsCopies bool
	// attached are the volumes that pods have attached.
	attached *attachments
	// failed limits the lines about volumes that cannot be deleted, broken those about guaranteed ones
	// that go.
	failed, broken *lineLimit
	// timer, when set, ends the wait for the next volume that is due, at timerAt.
	timer   *time.Timer
	timerAt time.Time
	// started is when the daemon was. sizesAsked: the sizes actor has not finished what it was asked.
	// sizesKnown is when no size was missing last, sizesTimer ends the wait for more to measure.
	started    time.Time
	sizesAsked bool
	sizesKnown time.Time
	sizesTimer *time.Timer
}

// deletionDue says that a volume may be due.
type deletionDue struct{}

// newRetention shares the index with its owner.
func newRetention(ctx context.Context, index *retained.Index, atOnce int, early bool, m *metrics.Metrics, log logr.Logger) *retention {
	return &retention{
		ctx: ctx, metrics: m, log: log, index: index, atOnce: atOnce, early: early, factor: 1, deleting: map[volume.ID]bool{},
		attached: newAttachments(), making: lifespan.NewMaking(), failed: newLineLimit(1, failedInterval),
		broken: newLineLimit(afterlifeBurst, afterlifeAgain), started: time.Now(),
	}
}

// add takes a volume that went to sleep. One that could not be deleted is tried again after a while.
func (r *retention) add(left resting) {
	var then time.Time
	if left.failed != nil {
		if left.tries == 1 && r.ctx.Err() == nil {
			r.logFailed(left)
		}
		then = time.Now().Add(deleteBackoff.After(left.tries))
	}
	r.index.Rest(*left.record, then, left.tries)
	r.index.Keep(left.record.ID, r.attached.holds(left.record.ID))
	r.deleteDue()
}

func (r *retention) logFailed(left resting) {
	about := func(more ...any) []any {
		return logkeys.About(*left.record, append(more, logkeys.Phase, left.record.Phase.String())...)
	}
	r.failed.write(func() {
		r.log.Error(left.failed, "a volume cannot be deleted, trying again until it can", about()...)
	}, func(more int) {
		r.log.Error(left.failed, "more volumes cannot be deleted, trying again until they can; this is one of them", about("volumes", more)...)
	})
}

// ended notes that the deletion of a volume has ended, if it was ordered, and whether it succeeded.
func (r *retention) ended(id volume.ID, deleted bool) {
	again, ok := r.deleting[id]
	if !ok {
		return
	}
	delete(r.deleting, id)
	r.making.End(id, deleted)
	if again {
		r.retrying--
	}
	r.deleteDue()
}

// pressure takes over a measurement of the disk.
func (r *retention) pressure(m *messages.Pressure) {
	r.factor, r.scarcer = m.Factor, m.Scarcer
	r.owed = r.owed || m.NoSpace && r.early
	r.asking = r.asking && !m.Answers
	r.making.Measured(m.Lacking, m.Short, m.Came, m.Answers, m.Erased...)
	r.judged(r.making.Judge(m.Factor < 1))
	r.index.Recheck()
	r.deleteDue()
}

// due is called for deletionDue.
func (r *retention) due() {
	// The tick may be of an earlier timer. A second one that is left running would go on for good,
	// and there would be more and more.
	actors.StopTimer(r.timer)
	r.timer = nil
	r.endsCopies = false
	r.deleteDue()
}

// deleteDue orders the deletion of the volumes that are due, and sets the timer for the next one.
func (r *retention) deleteDue() {
	if r.index.EndCopies(time.Now(), archiveSlice) && !r.endsCopies {
		r.endsCopies = true
		r.tick(&deletionDue{})
	}
	for range deletionSlice {
		now := time.Now()
		retry, _ := r.index.Resume(now)
		factor := r.factor
		if r.owed {
			factor = 0
		}
		settled, full := r.making.Settled(), len(r.deleting) >= r.atOnce || r.ctx.Err() != nil
		look := outlook{
			now: now, index: r.index, factor: factor, scarcer: r.scarcer, atBrink: r.making.AtBrink(),
			mayGoEarly: settled || r.making.Lacks() && r.making.MayBegin(r.index.Listed()),
			mayBreak:   settled || r.making.LacksBrink(),
			full:       full, retry: retry,
		}
		r.yields(&look)
		decision := next(look)
		if decision.delete {
			r.start(decision)
			continue
		}
		r.owed = r.owed && (decision.measure || full) // else nothing is left that may go for it
		switch {
		case decision.measure, decision.spare && r.making.Early() > 0:
			r.ask()
		case decision.spare:
			r.spare()
		}
		r.setTimer(decision.at)
		r.changed()
		return
	}
	r.tick(&deletionDue{})
	r.changed()
}

// start orders the deletion that was decided.
func (r *retention) start(d decision) {
	chosen := r.begin(d.chosen.ID(), d.cause == roomIsNeeded || d.cause == nothingElse)
	reason := d.cause.reason(chosen.Record, r.scarcer)
	if reason == volume.ForFloor {
		r.breakGuarantee(chosen)
	}
	r.owed = false
	r.delete(chosen, &messages.DeleteVolume{Reason: reason, Factor: d.factor, Tries: chosen.Tries})
}

// breakGuarantee says that a volume goes which was not to go early.
func (r *retention) breakGuarantee(chosen retained.Known) {
	pinned := chosen.Hold.Kind == volume.Pinned
	r.metrics.GuaranteeBroken(pinned)
	guarantee := "it is younger than --min-lifespan"
	if pinned {
		guarantee = "it is pinned"
	}
	r.broken.write(func() {
		r.log.Error(nil, "the disk is all but full and nothing else is left, deleting a volume that was guaranteed to stay",
			logkeys.About(chosen.Record, "guarantee", guarantee)...)
	}, func(more int) {
		r.log.Error(nil, "the disk is all but full, more guaranteed volumes are deleted than are logged one by one", "count", more)
	})
}

// begin notes that the deletion of a volume is ordered, and whether it goes early to make room. It returns what is
// known of the volume.
func (r *retention) begin(id volume.ID, early bool) retained.Known {
	chosen := r.index.Order(id)
	r.deleting[id] = chosen.Tries > 0
	if chosen.Tries > 0 {
		r.retrying++
	}
	r.making.Begin(id, chosen.Size, early)
	return chosen
}

// ask asks how much space there is once the data of deleted volumes is erased. That is erased
// before anything goes early.
func (r *retention) ask() {
	if r.asking || len(r.deleting) > 0 && !r.making.Unshown() {
		return // the answer, or the end of a deletion, comes back to deleteDue
	}
	r.asking = true
	r.making.Ask()
	r.measureDisk()
}

// setTimer sets the timer; a zero time leaves it. Most volumes that go to sleep are not due next
// and leave it too.
func (r *retention) setTimer(due time.Time) {
	if due.IsZero() || r.timer != nil && r.timerAt.Equal(due) {
		return
	}
	actors.StopTimer(r.timer)
	r.timer, r.timerAt = time.AfterFunc(time.Until(due), func() { r.tick(&deletionDue{}) }), due
}

// changed sets the metrics, and asks for sizes that are missing.
func (r *retention) changed() {
	r.metrics.DeletionsFailing(r.index.Waiting() + r.retrying)
	r.metrics.RetainedBytes(uint64(r.index.Bytes()))
	r.metrics.RetainedUnmeasured(r.index.Unmeasured())
	r.askSizes()
}

// stop stops all timers.
func (r *retention) stop() {
	actors.StopTimer(r.timer)
	actors.StopTimer(r.sizesTimer)
	r.failed.flush()
	r.broken.flush()
}
