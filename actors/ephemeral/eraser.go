package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
)

const (
	// trashInterval is how often the trash is searched for entries that a person put there. That is
	// rare.
	trashInterval = time.Hour
	// searchPause is the least time between two searches, and between two tries of an entry that
	// could not be erased.
	searchPause = 10 * time.Second
	// progressInterval is how often erasures that take long are logged. A measurement waits for
	// them that long, and no longer.
	progressInterval = time.Minute
	// maxRefusedLines is how many lines in that time the log has of entries that cannot be erased.
	// The others are counted.
	maxRefusedLines = 16
)

// deleteBackoff is long: what prevents a deletion (a mount inside, a broken file system) takes a
// person to clear.
var deleteBackoff = retry.Backoff{First: 10 * time.Second, Longest: 10 * time.Minute, Jitter: 0.1}

// errNoEnd: an erasure has used up its slices.
var errNoEnd = errors.New("it does not come to an end while others wait: it has very many files, or names keep appearing in it")

// trash is what the eraser needs of scratch.Dir.
type trash interface {
	TrashPage(from int64, atLeast int) (page []string, next int64, err error)
	TrashSize() (entries int, err error)
	Erase(ctx context.Context, name string, pace scratch.Pace) error
}

// eraser is the part of the disk actor that frees the space of deleted volumes: it erases the
// entries of the trash, those of an earlier process too. It sets aside what it cannot erase, such
// as a mount inside a volume, and tries again after growing waits.
type eraser struct {
	*environment
	trash trash
	// send sends a message to the disk actor itself.
	send func(any)

	queue trashQueue
	seed  maphash.Seed
	// reading: a page of the trash is being read. nextPage is where the one after it begins.
	reading  bool
	nextPage int64
	// pages is how many the pass has had. nextPass is when the next pass begins.
	pages    int
	nextPass time.Time
	// alarm is set to when something is due next.
	alarm   *time.Timer
	alarmAt time.Time
	// progress is set while an erasure runs.
	progress *time.Timer
	// refused limits the lines about entries that cannot be erased.
	refused *lineLimit
	// over is called with each volume of whose erasure no more room comes.
	over func(volume.ID)
	// counting is held by the erasure that makes the file system count what came free.
	counting sync.Mutex
}

type (
	// somethingDue says that it is time to look what is due.
	somethingDue struct{}
	// progressDue says that it is time to log the erasures that still run.
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
		// gained is how much more was free after it than before.
		gained volume.Size
		err    error
	}
)

// start begins with what an earlier process left. send sends a message to the disk actor.
func (e *eraser) start(send func(any)) {
	e.send, e.queue, e.seed = send, newTrashQueue(), maphash.MakeSeed()
	e.refused = newLineLimit(maxRefusedLines, progressInterval)
	e.read(0)
}

func (e *eraser) stop() {
	actors.StopTimer(e.alarm)
	actors.StopTimer(e.progress)
	e.refused.flush()
}

// advance does what is due, and reports whether a question need not wait any longer.
func (e *eraser) advance(now time.Time) (answered bool) {
	tryAgain := e.queue.retry(now)
	e.erase(now)
	over, nextOver := e.queue.overtime(now)
	for _, entry := range over {
		entry.stop()
		entry.stop = nil
	}
	switch {
	case e.reading:
	case e.queue.wantsPage():
		e.read(e.nextPage)
	case e.queue.wantsPass(), !e.queue.listing && !e.nextPass.After(now):
		e.read(0)
	}
	questions, nextLate := e.queue.answer(now)
	e.Metrics.TrashHolds(e.queue.held())
	e.setAlarm(tryAgain, nextOver, nextLate, e.nextPass)
	return questions > 0
}

// makesRoom reports whether space is about to come free.
func (e *eraser) makesRoom() bool {
	for entry := range e.queue.running {
		if time.Since(entry.begun) < progressInterval {
			return true
		}
	}
	return !e.queue.listed
}

// read reads a page of the trash.
func (e *eraser) read(from int64) {
	e.reading = true
	if from == 0 {
		e.pages, e.nextPass = 0, time.Time{}
		e.queue.beginPass()
	}
	var m listed
	e.run(func() (err error) {
		if from == 0 {
			if m.size, err = e.trash.TrashSize(); err != nil {
				return err
			}
		}
		m.names, m.next, err = e.trash.TrashPage(from, maxWaiting)
		return err
	}, func(err error) any { m.err = err; return &m })
}

// run runs f in a worker and sends what done makes of its error, or of the reason why no worker
// takes it.
func (e *eraser) run(f func() error, done func(error) any) {
	if err := actors.InWorker(e.System, f, func(err error) { e.send(done(err)) }); err != nil {
		e.send(done(err))
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
		e.Log.Error(m.err, "cannot look into the trash; it is tried again", logkeys.Interval, duration.Format(searchPause))
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
		e.nextPass = now.Add(deleteBackoff.Longest)
	case e.pages > 1:
		// Names may have been passed over.
		e.nextPass = now.Add(searchPause)
	default:
		e.nextPass = now.Add(trashInterval)
	}
}

// setAlarm sets the alarm to the earliest of the given times, unless it is set to an earlier one.
// Zero times do not count.
func (e *eraser) setAlarm(times ...time.Time) {
	for _, at := range times {
		if at.IsZero() || !e.alarmAt.IsZero() && !at.Before(e.alarmAt) {
			continue
		}
		actors.StopTimer(e.alarm)
		e.alarmAt = at
		e.alarm = time.AfterFunc(time.Until(at), func() { e.send(&somethingDue{}) })
	}
}

// erase begins as many erasures as may be under way.
func (e *eraser) erase(now time.Time) {
	for entry := e.queue.next(now); entry != nil; entry = e.queue.next(now) {
		ctx, stop := context.WithCancel(e.ctx)
		entry.stop = stop
		name, id := entry.name, entry.volume
		removed, gained := 0, volume.Size{}
		e.run(func() error {
			before, failed := e.Space()
			turn := e.turns.Take()
			defer turn.End()
			end := eraseSpan(e.Tracer, id)
			err := actors.Guard(e.Log, func() error { return e.trash.Erase(ctx, name, turn.Next) })
			turn.End()
			removed = turn.Removed()
			if failed == nil {
				gained = e.gained(before)
			}
			end(removed, err)
			if err == nil {
				e.Quota.Erased(scratch.ProjectOf(name))
			}
			return err
		}, func(err error) any { stop(); return &erased{entry: entry, removed: removed, gained: gained, err: err} })
	}
	if len(e.queue.running) > 0 && e.progress == nil {
		e.progress = time.AfterFunc(progressInterval, func() { e.send(&progressDue{}) })
	}
}

// gained returns how much more is free after an erasure than before. Others write at the same time, so
// on a disk at its floor the file system is made to count what came free before that is gone again. That
// may take seconds, so one erasure at a time does so, for all, and the others go on.
func (e *eraser) gained(before volume.Space) volume.Size {
	after, err := before, error(nil)
	if e.turns.Hurry() && e.counting.TryLock() {
		after, err = e.SpaceAfterErase(before)
		e.counting.Unlock()
	} else {
		after, err = e.Space()
	}
	if err != nil {
		return volume.Size{}
	}
	return more(before.Free, after.Free)
}

// erased forgets an entry that is gone, and sets one aside that is not.
func (e *eraser) erased(m *erased) {
	entry, now := m.entry, time.Now()
	sliceOver := entry.stop == nil && errors.Is(m.err, context.Canceled)
	entry.stop = nil
	entry.removed += m.removed
	switch {
	case e.ctx.Err() != nil:
	case sliceOver && e.queue.requeue(entry):
	case sliceOver:
		e.setAside(entry, now, fmt.Errorf("%w; %d files and directories were removed in %s", errNoEnd, entry.removed, mostSlices*erasureSlice))
	case m.err != nil:
		e.setAside(entry, now, m.err)
	default:
		e.queue.remove(entry)
		e.over(entry.volume)
		if m.removed == 0 {
			return // it was taken away otherwise
		}
		e.Metrics.VolumeErased()
		took := now.Sub(entry.begun)
		log := e.Log.V(1)
		if took > progressInterval || entry.tries > 0 {
			log = e.Log // the log has lines about it
		}
		log.Info("erased", "name", entry.name, logkeys.VolumeID, entry.volume, "removed", entry.removed, "took", duration.Format(took))
	}
}

func (e *eraser) setAside(entry *trashEntry, now time.Time, err error) {
	before := entry.reason
	entry.reason = maphash.String(e.seed, err.Error())
	e.queue.setAside(entry, now)
	e.over(entry.volume)
	if entry.reason == before {
		return // a person may need days to clear it, and one line is enough
	}
	e.refused.write(func() {
		_, setAside := e.queue.held()
		e.Log.Error(err, "cannot erase the data of a deleted volume; it is set aside in the trash and tried again",
			"name", entry.name, logkeys.VolumeID, entry.volume, "setAside", setAside)
	}, func(more int) {
		e.Log.Info("cannot erase the data of more deleted volumes; they are set aside in the trash and tried again", "more", more)
	})
}

// logProgress logs that erasures take long.
func (e *eraser) logProgress() {
	e.progress = nil
	if len(e.queue.running) > 0 {
		waiting, setAside := e.queue.held()
		e.Log.Info("erasing the data of deleted volumes", "running", len(e.queue.running),
			"waiting", waiting-len(e.queue.running), "setAside", setAside, "removed", e.turns.Removed())
	}
}
