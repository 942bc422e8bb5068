package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/logkeys"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// maxStarted bounds the erasures that are under way. They take turns, so that
	// a small volume is gone soon though a huge one came before it.
	maxStarted = 8
	// trashInterval is how often the trash is searched for what nobody erases.
	// It is rare: somebody put something there by hand.
	trashInterval = time.Hour
	// searchPause is the least time between two searches. Many entries that are due
	// again share one, and one that fails is not repeated at once.
	searchPause = 10 * time.Second
	// progressInterval is how often the log tells of erasures that take long. They
	// are waited for that long, and no longer, before the disk is measured.
	progressInterval = time.Minute
)

// bin is what the eraser needs of scratch.Dir.
type bin interface {
	Trash() (names []string, err error)
	Erase(ctx context.Context, name string, pace scratch.Pace) error
}

// eraser frees the space of deleted volumes: it erases the entries of the trash,
// those of an earlier process first. What cannot be erased, such as a mount
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

	entries map[string]*trashEntry
	// setAside is how many of them could not be erased, and are to be tried again.
	setAside int
	// queue are the entries that wait to be erased, in the order of their numbers.
	queue   []*trashEntry
	running map[*trashEntry]struct{}
	numbers uint64
	// questions wait for the entries up to a number.
	questions []question
	// counted is what had been removed when the last one was passed on.
	counted int64
	// listed: the trash has been searched once.
	listed bool
	// searched is when the last search ended, next when the timer again is set to.
	searched, next time.Time
	again          *time.Timer
	report         *time.Timer
}

// trashEntry is an entry of the trash that the eraser knows.
type trashEntry struct {
	name string
	// volume is whose data it was; empty when an earlier process left it.
	volume volume.ID
	// number is the entry's place in the queue; 0 while it is set aside.
	number uint64
	begun  time.Time
	// tries is how often it could not be erased, reason why the last time, due
	// when it is tried again.
	tries  int
	reason string
	due    time.Time
}

// question is to be passed on, with its number, when nothing waits or runs that
// came up to then.
type question struct {
	seq   uint64
	upTo  uint64
	asked time.Time
}

type (
	// searchDue says that the trash is to be searched.
	searchDue struct{}
	// progressDue says that the log is to tell of erasures that still run.
	progressDue struct{}
	// found is what is in the trash.
	found struct {
		names []string
		err   error
	}
	// erased says how an erasure ended.
	erased struct {
		entry   *trashEntry
		removed int
		err     error
	}
)

func eraserProps(e eraser) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		copied := e
		copied.entries, copied.running = map[string]*trashEntry{}, map[*trashEntry]struct{}{}
		return &copied
	}, actor.WithReceiverMiddleware(recovering(e.log)))
}

func (e *eraser) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Erase:
		e.add(m.Name, m.Volume)
	case *messages.Measure:
		e.questions = append(e.questions, question{seq: m.Seq, upTo: e.numbers, asked: time.Now()})
	case *messages.NoSpace:
		c.Send(e.pressure, &messages.NoSpace{Erasing: e.makesRoom()})
		return
	case *messages.Pressure:
		e.turns.hurry(m.Factor)
		return
	case *actor.Started, *searchDue:
		e.search(c)
		return
	case *found:
		e.found(c, m)
	case *erased:
		e.erased(c, m)
	case *progressDue:
		e.progress(c)
		return
	case *actor.Stopping:
		stopTimer(e.again)
		stopTimer(e.report)
		return
	default:
		ignoreLifecycle(e.log, c)
		return
	}
	e.start(c)
	e.answer(c)
}

// makesRoom tells whether space is about to come free.
func (e *eraser) makesRoom() bool {
	for entry := range e.running {
		if time.Since(entry.begun) < progressInterval {
			return true
		}
	}
	return !e.listed
}

// add queues an entry, unless that is known already.
func (e *eraser) add(name string, id volume.ID) {
	entry := e.entries[name]
	if entry == nil {
		entry = &trashEntry{name: name, volume: id}
		e.entries[name] = entry
		e.tellHeld()
	}
	if entry.number == 0 {
		e.numbers++
		entry.number = e.numbers
		e.queue = append(e.queue, entry)
	}
}

// search lists what is in the trash.
func (e *eraser) search(c actor.Context) {
	e.run(c, func() any {
		var m found
		m.err = guard(e.log, func() (err error) {
			m.names, err = e.bin.Trash()
			return err
		})
		return &m
	}, func(err error) any { return &found{err: err} })
}

// run has f work in a goroutine of its own and sends what it makes, or what
// refused makes of the reason why it cannot.
func (e *eraser) run(c actor.Context, f func() any, refused func(error) any) {
	root, self := c.ActorSystem().Root, c.Self()
	if err := e.workers.Go(func() { root.Send(self, f()) }); err != nil {
		root.Send(self, refused(err))
	}
}

// found queues what is in the trash and not known, or due again.
func (e *eraser) found(c actor.Context, m *found) {
	e.searched, e.next = time.Now(), time.Time{}
	if e.ctx.Err() != nil {
		return
	}
	e.wakeUp(c, e.searched.Add(trashInterval))
	if m.err != nil {
		e.wakeUp(c, e.searched)
		e.log.Error(m.err, "cannot look into the trash; it is tried again", "interval", duration.Format(searchPause))
	} else {
		e.addDue(m.names)
	}
	if !e.listed {
		e.listed = true
		// What an earlier process left comes before any question.
		for i := range e.questions {
			e.questions[i].upTo = e.numbers
		}
	}
	for _, entry := range e.entries {
		if entry.number == 0 {
			e.wakeUp(c, entry.due)
		}
	}
}

func (e *eraser) addDue(names []string) {
	now := time.Now()
	there := make(map[string]struct{}, len(names))
	for _, name := range names {
		there[name] = struct{}{}
	}
	for name, entry := range e.entries {
		if _, ok := there[name]; !ok && entry.number == 0 {
			e.forget(entry) // somebody else took it away
		}
	}
	for _, name := range names {
		entry := e.entries[name]
		switch {
		case entry != nil && entry.due.After(now):
		default:
			e.add(name, "")
		}
	}
}

// wakeUp has the trash searched at the given time, or a little later; a search
// that is set for an earlier time stays.
func (e *eraser) wakeUp(c actor.Context, at time.Time) {
	if earliest := e.searched.Add(searchPause); at.Before(earliest) {
		at = earliest
	}
	if !e.next.IsZero() && !at.Before(e.next) {
		return
	}
	stopTimer(e.again)
	e.next = at
	root, self := c.ActorSystem().Root, c.Self()
	e.again = time.AfterFunc(time.Until(at), func() { root.Send(self, &searchDue{}) })
}

// start begins as many erasures as may be under way.
func (e *eraser) start(c actor.Context) {
	for len(e.queue) > 0 && len(e.running) < maxStarted {
		entry := e.queue[0]
		e.queue = e.queue[1:]
		e.running[entry] = struct{}{}
		entry.begun = time.Now()
		e.run(c, func() any {
			turn := e.turns.take()
			defer turn.end()
			span := erasing(e.tracer, entry.volume)
			err := guard(e.log, func() error { return e.bin.Erase(e.ctx, entry.name, turn.next) })
			haveErased(span, turn.removed, err)
			return &erased{entry: entry, removed: turn.removed, err: err}
		}, func(err error) any { return &erased{entry: entry, err: err} })
	}
	if len(e.running) > 0 && e.report == nil {
		root, self := c.ActorSystem().Root, c.Self()
		e.report = time.AfterFunc(progressInterval, func() { root.Send(self, &progressDue{}) })
	}
}

// erased forgets an entry that is gone, and sets one aside that is not.
func (e *eraser) erased(c actor.Context, m *erased) {
	entry := m.entry
	delete(e.running, entry)
	entry.number = 0
	took := time.Since(entry.begun)
	switch {
	case e.ctx.Err() != nil:
	case m.err != nil:
		e.putAside(entry, m.err)
		e.wakeUp(c, entry.due)
	default:
		e.forget(entry)
		e.metrics.VolumeErased()
		log := e.log.V(1)
		if took > progressInterval || entry.tries > 0 {
			log = e.log // it was told of before
		}
		log.Info("erased", "name", entry.name, logkeys.VolumeID, entry.volume, "removed", m.removed, "took", duration.Format(took))
	}
}

// forget drops an entry that is not in the trash any more.
func (e *eraser) forget(entry *trashEntry) {
	delete(e.entries, entry.name)
	if entry.tries > 0 {
		e.setAside--
	}
	e.tellHeld()
}

func (e *eraser) tellHeld() { e.metrics.TrashHolds(len(e.entries)-e.setAside, e.setAside) }

func (e *eraser) putAside(entry *trashEntry, err error) {
	if entry.tries == 0 {
		e.setAside++
		e.tellHeld()
	}
	entry.tries++
	entry.due = time.Now().Add(deleteBackoff.after(entry.tries))
	// It may take somebody days to clear, and one line says it all.
	if entry.reason == err.Error() {
		return
	}
	entry.reason = err.Error()
	e.log.Error(err, "cannot erase the data of a deleted volume; it is set aside in the trash and tried again",
		"name", entry.name, logkeys.VolumeID, entry.volume, "setAside", e.setAside)
}

// progress tells of erasures that take long.
func (e *eraser) progress(c actor.Context) {
	e.report = nil
	if len(e.running) == 0 {
		return
	}
	e.log.Info("erasing the data of deleted volumes", "running", len(e.running), "waiting", len(e.queue),
		"removed", e.turns.removed.Load())
	e.start(c)
	e.answer(c)
}

// answer passes on the questions whose entries are erased or set aside, and those
// that have waited long enough.
func (e *eraser) answer(c actor.Context) {
	if !e.listed {
		return
	}
	first := e.numbers + 1
	if len(e.queue) > 0 {
		first = e.queue[0].number
	}
	for entry := range e.running {
		first = min(first, entry.number)
	}
	for len(e.questions) > 0 && (e.questions[0].upTo < first || time.Since(e.questions[0].asked) >= progressInterval) {
		removed := e.turns.removed.Load()
		c.Send(e.pressure, &messages.Measure{Seq: e.questions[0].seq, Erased: removed > e.counted})
		e.counted = removed
		e.questions = e.questions[1:]
	}
}
