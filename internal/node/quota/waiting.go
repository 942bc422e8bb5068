package quota

import (
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

const (
	// checkInterval is how often IDs are looked at that are about to become free. XFS counts a file
	// for a moment after its removal.
	checkInterval = time.Second
	// foreignAfter is how long that may take. What is left then are files of another program, or one that
	// a process holds open.
	foreignAfter = time.Minute
	// foreignInterval is how often those are looked at, foreignBatch how many at a time: a pod may make
	// as many as it can make files.
	foreignInterval = time.Minute
	foreignBatch    = 1024
	// While no ID is left at all they are looked at more often, and as many at a time as take some 50 ms.
	fullInterval = checkInterval
	fullBatch    = 32 * foreignBatch
)

// waiting are the IDs that no volume has and that are not free.
type waiting struct {
	// leaving are those that left a moment ago, the first one first.
	leaving []leaving
	// foreign are those that are set aside, in the order in which they are looked at.
	foreign []uint32
	// foreignDue is when the next of those are.
	foreignDue time.Time
	timer      *time.Timer
	timerAt    time.Time
	closed     bool
	// look is held by who looks which IDs are free; checking: that is the timer's. running is for Close, which waits
	// for its end.
	look     sync.Mutex
	checking bool
	running  sync.WaitGroup
	// told: the log has a line about an ID that is set aside.
	told bool
}

// leaving is an ID that was left at a time.
type leaving struct {
	n     uint32
	since time.Time
}

// setAside keeps an ID from being given to a volume. The caller holds mu.
func (p *Projects) setAside(n uint32) {
	w := &p.waiting
	w.foreign = append(w.foreign, n)
	if w.foreignDue.IsZero() {
		w.foreignDue = time.Now().Add(foreignInterval)
	}
	if soon := time.Now().Add(fullInterval); p.ids.isFull() && w.foreignDue.After(soon) {
		w.foreignDue = soon
	}
	if !w.told {
		w.told = true
		p.Log.Info("a project ID is set aside: files that are of no volume with this ID have it, or a limit; further ones are only counted",
			"project", p.IDs.First+n)
	}
	p.setTimer()
}

// setTimer sets the timer to the next look. The caller holds mu.
func (p *Projects) setTimer() {
	w := &p.waiting
	var at time.Time
	switch {
	case w.closed || w.checking:
		return
	case len(w.leaving) > 0:
		at = time.Now().Add(checkInterval)
	case len(w.foreign) > 0:
		at = w.foreignDue
	default:
		return
	}
	if w.timer != nil {
		if !w.timerAt.After(at) {
			return
		}
		w.timer.Stop()
	}
	w.timerAt = at
	w.timer = time.AfterFunc(time.Until(at), p.check)
}

// check looks which IDs are free now, when it is time for that.
func (p *Projects) check() {
	p.mu.Lock()
	w := &p.waiting
	if w.closed {
		p.mu.Unlock()
		return
	}
	w.timer, w.checking = nil, true
	w.running.Add(1)
	defer w.running.Done()
	p.mu.Unlock()

	w.look.Lock()
	p.lookForFree(false)
	w.look.Unlock()

	p.mu.Lock()
	w.checking = false
	p.setTimer()
	p.mu.Unlock()
	p.count()
}

// lookForFree looks at the IDs that left a moment ago, and at a batch of those that are set aside, if that is due, or
// if it cannot wait: no ID is left. The caller holds look.
func (p *Projects) lookForFree(now bool) {
	p.mu.Lock()
	w := &p.waiting
	left := w.leaving
	w.leaving = nil
	var foreign []uint32
	if began := time.Now(); now || !w.foreignDue.IsZero() && !w.foreignDue.After(began) {
		batch, interval := foreignBatch, foreignInterval
		if p.ids.isFull() {
			batch, interval = fullBatch, fullInterval
		}
		foreign = slices.Clone(w.foreign[:min(len(w.foreign), batch)])
		w.foreignDue = began.Add(interval)
	}
	p.mu.Unlock()

	left = slices.DeleteFunc(left, func(l leaving) bool { return p.free(l.n, true) })
	still := slices.DeleteFunc(slices.Clone(foreign), func(n uint32) bool { return p.free(n, false) })

	p.mu.Lock()
	defer p.mu.Unlock()
	w.foreign = append(w.foreign[len(foreign):], still...)
	if len(w.foreign) == 0 {
		w.foreign, w.foreignDue, w.told = nil, time.Time{}, false
	}
	ended := time.Now()
	for _, l := range left {
		if ended.Sub(l.since) >= foreignAfter {
			p.setAside(l.n)
		} else {
			w.leaving = append(w.leaving, l)
		}
	}
}

// count brings the metrics up to date.
func (p *Projects) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Metrics.ProjectsTaken(p.ids.count, len(p.waiting.foreign), len(p.strays))
}

// FindForeign sets the IDs aside that the kernel counts something for, or has a limit of, and that
// no record and nothing in the trash has. It takes some microseconds for each ID, so it runs beside
// the rest: [Projects.Take] looks at each ID that it gives. more is called after each batch, and
// ends it by false.
func (p *Projects) FindForeign(more func() bool) {
	if p == nil || p.state == None {
		return
	}
	seen := 0
	for quota, err := range p.Kernel.From(p.IDs.First) {
		if err != nil {
			p.Log.Info("cannot list the projects in use; each is looked at before a volume gets it", logkeys.Cause, err.Error())
			return
		}
		if !p.IDs.has(quota.ID) {
			break
		}
		if n := quota.ID - p.IDs.First; !quota.isFree() {
			p.mu.Lock()
			if !p.ids.taken.has(n) {
				p.ids.add(n)
				p.setAside(n)
			}
			p.mu.Unlock()
		}
		if seen++; seen%foreignBatch == 0 && !more() {
			return
		}
	}
	p.count()
}

// Close ends all that goes on by itself, and returns when it has ended.
func (p *Projects) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.waiting.closed = true
	if p.waiting.timer != nil {
		p.waiting.timer.Stop()
	}
	p.mu.Unlock()
	p.waiting.running.Wait()
}
