package actors

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/messages"
)

const (
	// trashInterval is how often the trash is searched for what nobody erases.
	// It is rare: somebody put something there by hand.
	trashInterval = time.Hour
	// searchPause is the least time between two searches, and between two tries of what
	// could not be erased.
	searchPause = 10 * time.Second
	// progressInterval is how often the log tells of erasures that take long. They
	// are waited for that long, and no longer, before the disk is measured.
	progressInterval = time.Minute
	// maxToldAside is how many lines in that time the log has of entries that cannot be
	// erased. The others are counted.
	maxToldAside = 16
)

// errNoEnd: an erasure has used up its slices.
var errNoEnd = errors.New("it does not come to an end while others wait: it has very many files, or names keep appearing in it")

// bin is what the eraser needs of scratch.Dir.
type bin interface {
	TrashPage(from int64, atLeast int) (page []string, next int64, err error)
	TrashSize() (entries int, err error)
	Erase(ctx context.Context, name string, pace scratch.Pace) error
}

// eraser frees the space of deleted volumes: it erases the entries of the trash,
// those of an earlier process too. What cannot be erased, such as a mount
// inside a volume, it sets aside and tries again with growing waits.
type eraser struct {
	ctx      context.Context
	bin      bin
	workers  *workers
	turns    *turns
	pressure *actor.PID
	log      logr.Logger
	metrics  *metrics.Metrics
	// tracer is nil when nothing is traced.
	tracer trace.Tracer

	queue trashQueue
	seed  maphash.Seed
	// reading: a page of the trash is being read. nextPage is where the one after it
	// begins.
	reading  bool
	nextPage int64
	// pages is how many the pass has had. nextPass is when the next pass begins.
	pages    int
	nextPass time.Time
	// alarm is set to when something is due next.
	alarm   *time.Timer
	alarmAt time.Time
	report  *time.Timer
	aside   toldAside
	// counted is what had been removed when the last question was passed on.
	counted int64
}

// toldAside is what the log has been told since a time of entries that were set aside.
type toldAside struct {
	since        time.Time
	told, untold int
}

type (
	// somethingDue says that it is time to look what is due.
	somethingDue struct{}
	// progressDue says that the log is to tell of erasures that still run.
	progressDue struct{}
	// listed is a page of what is in the trash; the first has the size of it all.
	listed struct {
		names []string
		next  int64
		size  int
		err   error
	}
	// erased says how an erasure ended, or a slice of it.
	erased struct {
		entry   *trashEntry
		removed int
		err     error
	}
)

func eraserProps(e eraser) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		copied := e
		copied.queue, copied.seed = newTrashQueue(), maphash.MakeSeed()
		return &copied
	}, actor.WithReceiverMiddleware(recovering(e.log)))
}

func (e *eraser) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Erase:
		e.queue.delete(m.Name, m.Volume)
	case *messages.Measure:
		e.queue.ask(m.Seq, time.Now())
	case *messages.NoSpace:
		c.Send(e.pressure, &messages.NoSpace{Erasing: e.makesRoom()})
		return
	case *messages.Pressure:
		e.turns.hurry(m.Factor)
		return
	case *actor.Started:
		e.read(c, 0)
	case *somethingDue:
		e.alarm, e.alarmAt = nil, time.Time{}
	case *listed:
		e.listed(m)
	case *erased:
		e.erased(m)
	case *progressDue:
		e.progress()
	case *actor.Stopping:
		stopTimer(e.alarm)
		stopTimer(e.report)
		return
	default:
		ignoreLifecycle(e.log, c)
		return
	}
	if e.ctx.Err() == nil {
		e.goOn(c, time.Now())
	}
}

// goOn does what is due.
func (e *eraser) goOn(c actor.Context, now time.Time) {
	tryAgain := e.queue.retry(now)
	e.start(c, now)
	over, nextOver := e.queue.overtime(now)
	for _, entry := range over {
		entry.stop()
		entry.stop = nil
	}
	switch {
	case e.reading:
	case e.queue.wantsPage():
		e.read(c, e.nextPage)
	case e.queue.wantsPass(), !e.queue.listing && !e.nextPass.After(now):
		e.read(c, 0)
	}
	answered, nextLate := e.queue.answer(now)
	for _, question := range answered {
		removed := e.turns.removed.Load()
		c.Send(e.pressure, &messages.Measure{Seq: question.seq, Erased: removed > e.counted})
		e.counted = removed
	}
	e.metrics.TrashHolds(e.queue.held())
	e.wakeUp(c, tryAgain, nextOver, nextLate, e.aside.tellRest(e.log, now), e.nextPass)
}

// makesRoom tells whether space is about to come free.
func (e *eraser) makesRoom() bool {
	for entry := range e.queue.running {
		if time.Since(entry.begun) < progressInterval {
			return true
		}
	}
	return !e.queue.listed
}

// read reads a page of the trash.
func (e *eraser) read(c actor.Context, from int64) {
	e.reading = true
	if from == 0 {
		e.pages, e.nextPass = 0, time.Time{}
		e.queue.beginPass()
	}
	e.run(c, func() any {
		var m listed
		m.err = guard(e.log, func() (err error) {
			if from == 0 {
				if m.size, err = e.bin.TrashSize(); err != nil {
					return err
				}
			}
			m.names, m.next, err = e.bin.TrashPage(from, maxWaiting)
			return err
		})
		return &m
	}, func(err error) any { return &listed{err: err} })
}

// run has f work in a goroutine of its own and sends what it makes, or what
// refused makes of the reason why it cannot.
func (e *eraser) run(c actor.Context, f func() any, refused func(error) any) {
	root, self := c.ActorSystem().Root, c.Self()
	if err := e.workers.Go(func() { root.Send(self, f()) }); err != nil {
		root.Send(self, refused(err))
	}
}

// listed queues what is in the trash and not known.
func (e *eraser) listed(m *listed) {
	e.reading = false
	if e.ctx.Err() != nil {
		return
	}
	now := time.Now()
	if m.err != nil {
		e.log.Error(m.err, "cannot look into the trash; it is tried again", "interval", duration.Format(searchPause))
		e.queue.endPass()
		e.nextPass = now.Add(searchPause)
		return
	}
	if e.pages == 0 {
		e.queue.count(m.size)
	}
	e.pages++
	e.nextPage = m.next
	e.queue.page(m.names)
	if m.next != 0 {
		return
	}
	e.queue.endPass()
	switch {
	case e.queue.dropped > 0:
		e.nextPass = now.Add(deleteBackoff.longest)
	case e.pages > 1:
		// Names may have been passed over.
		e.nextPass = now.Add(searchPause)
	default:
		e.nextPass = now.Add(trashInterval)
	}
}

// wakeUp has the eraser look what is due at the earliest of the given times, or before.
// Those that are zero do not count.
func (e *eraser) wakeUp(c actor.Context, times ...time.Time) {
	for _, at := range times {
		if at.IsZero() || !e.alarmAt.IsZero() && !at.Before(e.alarmAt) {
			continue
		}
		stopTimer(e.alarm)
		e.alarmAt = at
		root, self := c.ActorSystem().Root, c.Self()
		e.alarm = time.AfterFunc(time.Until(at), func() { root.Send(self, &somethingDue{}) })
	}
}

// start begins as many erasures as may be under way.
func (e *eraser) start(c actor.Context, now time.Time) {
	for entry := e.queue.next(now); entry != nil; entry = e.queue.next(now) {
		ctx, stop := context.WithCancel(e.ctx)
		entry.stop = stop
		name, volume := entry.name, entry.volume
		e.run(c, func() any {
			defer stop()
			turn := e.turns.take()
			defer turn.end()
			span := erasing(e.tracer, volume)
			err := guard(e.log, func() error { return e.bin.Erase(ctx, name, turn.next) })
			haveErased(span, turn.removed, err)
			return &erased{entry: entry, removed: turn.removed, err: err}
		}, func(err error) any { stop(); return &erased{entry: entry, err: err} })
	}
	if len(e.queue.running) > 0 && e.report == nil {
		root, self := c.ActorSystem().Root, c.Self()
		e.report = time.AfterFunc(progressInterval, func() { root.Send(self, &progressDue{}) })
	}
}

// erased forgets an entry that is gone, and sets one aside that is not.
func (e *eraser) erased(m *erased) {
	entry, now := m.entry, time.Now()
	sliceOver := entry.stop == nil && errors.Is(m.err, context.Canceled)
	entry.stop = nil
	entry.removed += m.removed
	switch {
	case e.ctx.Err() != nil:
	case sliceOver && e.queue.comeAround(entry):
	case sliceOver:
		e.putAside(entry, now, fmt.Errorf("%w; %d files and directories were removed in %s", errNoEnd, entry.removed, mostSlices*erasureSlice))
	case m.err != nil:
		e.putAside(entry, now, m.err)
	default:
		e.queue.gone(entry)
		if m.removed == 0 {
			return // it was taken away otherwise
		}
		e.metrics.VolumeErased()
		took := now.Sub(entry.begun)
		log := e.log.V(1)
		if took > progressInterval || entry.tries > 0 {
			log = e.log // it was told of before
		}
		log.Info("erased", "name", entry.name, logkeys.VolumeID, entry.volume, "removed", entry.removed, "took", duration.Format(took))
	}
}

func (e *eraser) putAside(entry *trashEntry, now time.Time, err error) {
	before := entry.reason
	entry.reason = maphash.String(e.seed, err.Error())
	e.queue.putAside(entry, now)
	// It may take somebody days to clear, and one line says it all.
	if entry.reason == before || !e.aside.mayTell(now) {
		return
	}
	_, setAside := e.queue.held()
	e.log.Error(err, "cannot erase the data of a deleted volume; it is set aside in the trash and tried again",
		"name", entry.name, logkeys.VolumeID, entry.volume, "setAside", setAside)
}

// mayTell tells whether the log may have one more line, and counts it otherwise.
func (t *toldAside) mayTell(now time.Time) bool {
	if t.since.IsZero() {
		t.since = now
	}
	if t.told == maxToldAside {
		t.untold++
		return false
	}
	t.told++
	return true
}

// tellRest tells how many lines the log does not have, once the time is over, and
// returns when that is; zero when there is nothing to wait for.
func (t *toldAside) tellRest(log logr.Logger, now time.Time) time.Time {
	if t.since.IsZero() {
		return time.Time{}
	}
	if end := t.since.Add(progressInterval); now.Before(end) {
		return end
	}
	if t.untold > 0 {
		log.Info("cannot erase the data of more deleted volumes; they are set aside in the trash and tried again", "more", t.untold)
	}
	*t = toldAside{}
	return time.Time{}
}

// progress tells of erasures that take long.
func (e *eraser) progress() {
	e.report = nil
	if len(e.queue.running) > 0 {
		waiting, setAside := e.queue.held()
		e.log.Info("erasing the data of deleted volumes", "running", len(e.queue.running), "waiting", waiting-len(e.queue.running), "setAside", setAside,
			"removed", e.turns.removed.Load())
	}
}
