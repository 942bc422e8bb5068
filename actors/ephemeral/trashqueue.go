package ephemeral

import (
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// maxStarted bounds the erasures that are under way. They take turns, so a small volume is gone
	// soon even after a huge one.
	maxStarted = 8
	// maxWaiting bounds the entries that are known to wait. There may be a million in the trash;
	// the others are listed when these are erased.
	maxWaiting = 4096
	// maxAside bounds the entries that are known to be set aside, each with a time to be tried
	// again. The others are tried each time that the trash is listed.
	maxAside = 1024
	// erasureSlice is how long an entry is erased while others wait. Then it goes behind them, and
	// later on from where it was.
	erasureSlice = time.Minute
	// mostSlices is how many slices an entry has before it is set aside. Two hours are enough for
	// millions of files on a slow, shared disk. An entry that takes longer most likely grows all
	// the time; it still gets a slice now and then.
	mostSlices = 120
)

// trashEntry is an entry of the trash that is known by name.
type trashEntry struct {
	name string
	// volume is whose data it was; empty when an earlier process left it.
	volume volume.ID
	// number tells entries that came before a question from those that came after.
	number uint64
	// begun is when the erasure began, resumed when its slice did, slices how many it has used up,
	// removed how much those removed.
	begun, resumed time.Time
	slices         int
	removed        int
	// stop ends the slice of a running erasure; nil once that was done.
	stop func()
	// tries is how often it could not be erased, reason a hash of the last error, due when it is
	// tried again.
	tries  int
	reason uint64
	due    time.Time
}

// trashQueue knows what is in the trash, and decides what is erased next. It does no I/O and has no clock.
//
// Entries that this process deleted, entries that were found in the trash, and entries that have had a
// slice are taken in turns: what was deleted to make room is erased soon even if a million others were
// found, and none waits for ever. Entries that take long never run in all places while others wait.
type trashQueue struct {
	known map[string]*trashEntry
	// deleted and found wait, each in this order. found has the entries that are tried again too.
	deleted, found []*trashEntry
	foundNext      bool
	// again are the entries whose slice is over; runningAgain is how many running entries have used one up.
	again        []*trashEntry
	againNext    bool
	runningAgain int
	running      map[*trashEntry]struct{}
	// aside are in the order in which they are due.
	aside []*trashEntry
	// tried is how many of known could not be erased at least once.
	tried   int
	numbers uint64

	// listing: a pass through the trash is under way. listed: one has been begun.
	listing, listed bool
	// missed: something was deleted that is neither known nor certain to be found by the running pass.
	missed bool
	// unlisted is how many entries are not known because they have not been listed.
	unlisted int
	// dropped is how many are not known because too many could not be erased, droppedBefore how
	// many of those of the last pass this one has not found yet.
	dropped, droppedBefore int

	questions []question
}

// question is to be answered when all is erased or set aside that was deleted before.
type question struct {
	asked time.Time
	// counted: everything that was deleted before is known. These are the entries up to the number
	// upTo, of which left still are there.
	counted bool
	upTo    uint64
	left    int
}

func newTrashQueue() trashQueue {
	return trashQueue{known: map[string]*trashEntry{}, running: map[*trashEntry]struct{}{}}
}

// waiting is how many entries wait to be erased.
func (q *trashQueue) waiting() int { return len(q.deleted) + len(q.found) + len(q.again) }

// held returns how many entries are to be erased, and how many more could not be so far.
func (q *trashQueue) held() (entries, setAside int) {
	return len(q.known) - q.tried + q.unlisted, q.tried + q.dropped + q.droppedBefore
}

// delete queues what this process has just deleted.
func (q *trashQueue) delete(name string, id volume.ID) {
	switch entry := q.known[name]; {
	case entry != nil:
		entry.volume = id
	case len(q.deleted) >= maxWaiting:
		q.missed = true
		q.unlisted++
	default:
		q.deleted = append(q.deleted, q.add(name, id))
	}
}

func (q *trashQueue) add(name string, id volume.ID) *trashEntry {
	q.numbers++
	entry := &trashEntry{name: name, volume: id, number: q.numbers}
	q.known[name] = entry
	return entry
}

// wantsPass reports whether a pass through the trash is to begin at once.
func (q *trashQueue) wantsPass() bool { return q.missed && !q.listing && len(q.found) == 0 }

// wantsPage reports whether the pass that is under way is to go on.
func (q *trashQueue) wantsPage() bool { return q.listing && len(q.found) == 0 }

// beginPass notes that the trash is listed from its beginning. Its entries are counted afterwards,
// by [trashQueue.count].
func (q *trashQueue) beginPass() { q.listing, q.missed = true, false }

// count takes over how many entries the trash had when the pass began.
func (q *trashQueue) count(size int) {
	q.listed = true
	q.droppedBefore = min(q.droppedBefore+q.dropped, max(0, size-len(q.known)))
	q.dropped = 0
	q.unlisted = max(0, size-len(q.known)-q.droppedBefore)
}

// page queues what the pass has come to.
func (q *trashQueue) page(names []string) {
	for _, name := range names {
		if q.known[name] != nil {
			continue
		}
		q.found = append(q.found, q.add(name, ""))
		if q.unlisted > 0 {
			q.unlisted--
		} else if q.droppedBefore > 0 {
			q.droppedBefore--
		}
	}
}

// endPass says that the pass has come to its end, or cannot go on.
func (q *trashQueue) endPass() {
	q.listing, q.listed = false, true
	q.droppedBefore = 0
	if q.missed {
		return
	}
	q.unlisted = 0
	// Now the number of what was deleted before is known.
	for i := range q.questions {
		q.countFor(&q.questions[i])
	}
}

// next takes the entry that is to be erased next; nil when none waits or enough run.
func (q *trashQueue) next(now time.Time) *trashEntry {
	if len(q.running) >= maxStarted || q.waiting() == 0 {
		return nil
	}
	from := q.turn()
	entry := (*from)[0]
	*from = (*from)[1:]
	if entry.begun.IsZero() {
		entry.begun = now
	}
	entry.resumed = now
	q.running[entry] = struct{}{}
	if entry.slices > 0 {
		q.runningAgain++
	}
	return entry
}

// turn returns the list whose turn it is, which is not empty.
func (q *trashQueue) turn() *[]*trashEntry {
	others := len(q.deleted) + len(q.found)
	if others == 0 || len(q.again) > 0 && q.againNext && q.runningAgain < maxStarted/2 {
		q.againNext = false
		return &q.again
	}
	q.againNext = true
	q.foundNext = !q.foundNext
	if len(q.found) == 0 || len(q.deleted) > 0 && q.foundNext {
		return &q.deleted
	}
	return &q.found
}

// ended notes that an entry does not run any more.
func (q *trashQueue) ended(entry *trashEntry) {
	delete(q.running, entry)
	if entry.slices > 0 {
		q.runningAgain--
	}
}

// overtime returns the running entries whose slice is over while others wait, and when the next
// slice ends; zero when that does not matter.
func (q *trashQueue) overtime(now time.Time) (over []*trashEntry, next time.Time) {
	if q.waiting() == 0 {
		return nil, time.Time{}
	}
	for entry := range q.running {
		end := entry.resumed.Add(erasureSlice)
		switch {
		case entry.stop == nil:
		case !end.After(now):
			over = append(over, entry)
		case next.IsZero() || end.Before(next):
			next = end
		}
	}
	return over, next
}

// requeue puts an entry behind the others whose slice is over, and reports whether it may have
// another slice.
func (q *trashQueue) requeue(entry *trashEntry) bool {
	if entry.slices+1 >= mostSlices {
		return false
	}
	q.ended(entry)
	entry.slices++
	q.again = append(q.again, entry)
	q.againNext = false
	return true
}

// remove forgets an entry that is not in the trash any more.
func (q *trashQueue) remove(entry *trashEntry) {
	q.settle(entry)
	q.forget(entry)
}

// setAside sets an entry aside that could not be erased, to be tried again.
func (q *trashQueue) setAside(entry *trashEntry, now time.Time) {
	q.settle(entry)
	if len(q.aside) >= maxAside {
		q.forget(entry)
		q.dropped++
		return
	}
	if entry.tries == 0 {
		q.tried++
	}
	entry.tries++
	entry.begun = time.Time{}
	entry.due = now.Add(deleteBackoff.After(entry.tries))
	place, _ := slices.BinarySearchFunc(q.aside, entry.due, func(e *trashEntry, due time.Time) int { return e.due.Compare(due) })
	q.aside = slices.Insert(q.aside, place, entry)
}

func (q *trashQueue) forget(entry *trashEntry) {
	delete(q.known, entry.name)
	if entry.tries > 0 {
		q.tried--
	}
}

// retry queues the entries again that are due, and returns when the next one is; zero when there is none.
func (q *trashQueue) retry(now time.Time) (next time.Time) {
	for len(q.aside) > 0 && !q.aside[0].due.After(now) {
		entry := q.aside[0]
		q.aside = q.aside[1:]
		// It holds up no question that came while it was set aside.
		q.numbers++
		entry.number = q.numbers
		if entry.slices > 0 {
			q.again = append(q.again, entry)
		} else {
			q.found = append(q.found, entry)
		}
	}
	if len(q.aside) == 0 {
		return time.Time{}
	}
	return q.aside[0].due
}

// ask notes a question.
func (q *trashQueue) ask(now time.Time) {
	asked := question{asked: now}
	if q.listed && !q.listing && !q.missed {
		q.countFor(&asked)
	}
	q.questions = append(q.questions, asked)
}

// countFor notes what a question waits for, unless that is known.
func (q *trashQueue) countFor(asked *question) {
	if !asked.counted {
		asked.counted, asked.upTo, asked.left = true, q.numbers, q.waiting()+len(q.running)
	}
}

// settle notes that a running entry is erased or set aside.
func (q *trashQueue) settle(entry *trashEntry) {
	q.ended(entry)
	for i := range q.questions {
		if asked := &q.questions[i]; asked.counted && entry.number <= asked.upTo {
			asked.left--
		}
	}
}

// answer returns how many questions, in their order, need not wait any longer, and when the next
// one has waited long enough; zero when none waits.
func (q *trashQueue) answer(now time.Time) (answered int, next time.Time) {
	if !q.listed {
		return 0, time.Time{}
	}
	for _, asked := range q.questions {
		settled := asked.counted && asked.left <= 0
		if late := asked.asked.Add(progressInterval); !settled && late.After(now) {
			next = late
			break
		}
		answered++
	}
	q.questions = q.questions[answered:]
	return answered, next
}
