package check

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

const (
	// dueInterval is the interval at which volumes near their deadline are checked.
	dueInterval = 100 * time.Millisecond
	// retainedLooks is how many others are looked at in a second, in turn.
	retainedLooks = 200
)

// Retained says that the kubelet's last unpublish of a volume succeeded: from
// now on its data is followed until it is gone.
func (c *Checker) Retained(v *history.Volume) {
	if v.Data == "" {
		return // a persistent volume outlives its pods
	}
	c.checkTarget(v)
	if c.takeSpoilt(v) {
		return
	}
	r := newRetained(v, c.cfg)
	c.mu.Lock()
	c.retained.add(r)
	heap.Push(&c.due, r)
	heap.Push(&c.ages, r)
	if c.cfg.Outcomes && !v.Failed {
		heap.Push(&c.successes, r)
	}
	c.noteRetained(r)
	c.mu.Unlock()
	c.lookAtRetained(r)
}

// lookAtDue looks at the volumes that are near their deadline or beyond.
func (c *Checker) lookAtDue() {
	now := time.Now()
	var due []*retained
	c.mu.Lock()
	for len(c.due) > 0 && !c.due[0].next.After(now) {
		r := heap.Pop(&c.due).(*retained)
		if !r.over {
			due = append(due, r)
		}
	}
	c.mu.Unlock()
	for _, r := range due {
		c.lookAtRetained(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range due {
		if !r.over {
			r.next = r.nextLook(time.Now())
			heap.Push(&c.due, r)
		}
	}
}

// lookAtSomeRetained looks at the next ones in turn, to notice what goes early.
func (c *Checker) lookAtSomeRetained(n int) {
	c.mu.Lock()
	turn := c.retained.next(n)
	c.mu.Unlock()
	for _, r := range turn {
		c.lookAtRetained(r)
	}
}

// lookAtRetained looks at one volume and reports whether it is whole. What
// another goroutine looks at meanwhile is left to that.
func (c *Checker) lookAtRetained(r *retained) (whole bool) {
	c.mu.Lock()
	if r.over || r.looking {
		c.mu.Unlock()
		return false
	}
	r.looking = true
	c.mu.Unlock()

	before := time.Now()
	found, err := c.cfg.Look(r.volume, r.volume.Data)
	after := time.Now()
	// Whatever becomes of one that a fault took away, it was not the driver.
	touched := r.volume.Troubled(time.Time{}, after, workload.VolumeRemoved, workload.VolumeSymlink)
	broken := ""
	if touched {
		c.excuse(r.volume)
		c.settle(r, func(*Counts) {})
	} else {
		c.weigh(r, after)
		broken = c.judge(r, before, after, found, err)
		c.conclude(r, found, broken, before, after, err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	r.looking = false
	switch {
	case found == story.Whole:
		r.lastWhole, r.partialSince = before, time.Time{}
		if !r.seen && !r.repeated(after) && after.After(r.mayGoFrom().Add(-lastMoments)) {
			r.seen = true
			c.counts.Seen++
		}
	case found == story.Partial && r.partialSince.IsZero():
		r.partialSince = before
		if r.next.After(after.Add(moment)) {
			// Do not wait until its turn comes again.
			r.next = after.Add(moment)
			heap.Init(&c.due)
		}
	}
	return found == story.Whole && broken == "" && !touched
}

// conclude acts on what was found of a volume, and what that breaks. Only one goroutine does so for a
// volume at a time.
func (c *Checker) conclude(r *retained, found story.Verb, broken string, before, after time.Time, err error) {
	if found == story.Gone {
		c.noteGone(r.volume, after)
	}
	switch sent := r.volume.Removal().Sent; {
	case found == story.Gone && broken == "" && !sent.IsZero() && !sent.After(after):
		c.noteEnd(r, after, false)
		c.settle(r, func(n *Counts) { n.Removed++ })
	case found == story.Gone && broken == "" && r.repeated(after):
		c.noteEnd(r, after, false)
		c.settle(r, func(n *Counts) { n.Repeated++ })
	case found == story.Gone && broken == "":
		held := hindered(r.volume)
		c.noteEnd(r, after, false)
		c.settle(r, func(n *Counts) {
			n.Expired++
			if !held {
				n.Lateness = append(n.Lateness, max(0, after.Sub(r.dueAt())))
			}
		})
	case broken == "":
	case found == story.Gone && c.mayBeEvicted(r, after):
		c.evicted(r, after)
	case found == story.Gone && c.broken(r, after) == c.durable(r.from, after) && c.besideRemoval(r.volume, r.lastWhole, after):
		c.reportAs(history.Removes, r, fmt.Sprintf("another volume was removed, and at %s: %v", story.Clock(after), absence(err)))
	case found == story.Gone:
		c.report(r, after, fmt.Sprintf("%s%s (%v)", broken, c.pressureText(r, after), absence(err)))
	case found == story.Whole:
		c.report(r, before, broken)
	default:
		c.report(r, after, broken)
	}
}

// evicted notes that a volume went early, as pressure permits.
func (c *Checker) evicted(r *retained, by time.Time) {
	c.noteEnd(r, by, true)
	c.settle(r, func(n *Counts) { n.Evicted++ })
	c.mu.Lock()
	c.lastEvicted = by
	c.mu.Unlock()
	if !r.released() && (!c.cfg.Outcomes || r.volume.Failed) { // those go before others
		c.checkOrder(r, by)
	}
	c.suspect(r, by)
	c.checkVain(r.volume, by)
}

func absence(err error) error {
	if err == nil {
		return errors.New("it is not there")
	}
	return err
}

// durable is the promise that is broken by a wrong end of a volume that was
// retained from one time to another: where the wall clock stepped between, that
// is taken as the reason.
func (c *Checker) durable(from, to time.Time) history.Promise {
	if c.cfg.Timeline.During(from, to, workload.ClockStep) {
		return history.Monotonic
	}
	return history.Durable
}

// report ends a volume's story with a violation.
func (c *Checker) report(r *retained, at time.Time, what string) {
	c.reportAs(c.broken(r, at), r, what)
}

func (c *Checker) reportAs(broken history.Promise, r *retained, what string) {
	c.cfg.Findings.Add(broken, r.volume, what)
	// What is left of it is reported herewith.
	c.excuse(r.volume)
	c.settle(r, func(*Counts) {})
}

// settle ends a volume's story.
func (c *Checker) settle(r *retained, count func(*Counts)) {
	hindered := hindered(r.volume)
	c.noteOver(r.volume)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.over = true
	c.retained.remove(r)
	count(&c.counts)
	if hindered {
		c.hindered = append(c.hindered, r)
	}
	c.trimAges()
}

// hindered reports whether something was ever mounted inside of the volume.
func hindered(v *history.Volume) bool {
	return v.Troubled(time.Time{}, time.Now(), workload.ForeignMount)
}
