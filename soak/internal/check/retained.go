package check

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

const (
	// lastMoments is when the close watch of a volume begins, before its
	// deadline.
	lastMoments = time.Second
	// moment is for how long a directory may be there without all its data: a
	// volume goes by one rename.
	moment = 300 * time.Millisecond
)

// retained is a volume whose data lives on. The driver began to count at some
// moment between the first unpublish that it was sent and the last that it
// confirmed, so the deadline is known as an interval.
type retained struct {
	volume *history.Volume
	// abandoned says that it was not unpublished: the driver had to notice that its pod is gone, by to.
	abandoned bool
	// empty says that nothing promises that its data is there.
	empty bool
	// from and to are that interval's ends.
	from, to time.Time
	// earliest is the first moment at which data may go by its lifespan alone;
	// deadline is the last one that the driver can have meant.
	earliest, deadline time.Time

	// grace is how long it is kept once a person has released it.
	grace time.Duration
	// tolerance is how late the driver may be.
	tolerance time.Duration

	// next is when it is to be looked at again.
	next time.Time
	// lastWhole is when it was last found whole.
	lastWhole time.Time
	// partialSince is when it was first found partial; zero if it was not.
	partialSince time.Time
	// seen says that it was there in its last moments.
	seen bool
	// looking says that a look is under way.
	looking bool
	over    bool
	// surplus says whether it goes because of others of its owner; nil before that was looked at.
	surplus atomic.Pointer[surplus]
}

func newRetained(v *history.Volume, cfg Config) *retained {
	lifespan := cfg.lifespan(v)
	r := &retained{volume: v, grace: cfg.ReleaseGrace, tolerance: cfg.Tolerance,
		from: v.FirstSent(history.Unpublish), to: v.LastOK(history.Unpublish)}
	r.earliest = r.from.Add(lifespan)
	if v.OnFailure && !v.Failed {
		// How long it is kept depends on when the driver learns that.
		r.earliest = r.from.Add(min(lifespan, cfg.ReleaseGrace))
	}
	r.deadline = r.to.Add(lifespan)
	r.next = r.earliest.Add(-lastMoments)
	r.lastWhole = r.from
	return r
}

// troubles are what befell it.
func (r *retained) troubles() []history.Trouble {
	if r.volume == nil {
		return nil
	}
	return r.volume.Troubles()
}

// judge tells the story of a volume what a look between the two times found, and returns what that breaks; empty for
// nothing. The error says what was found of one that is not whole. Whether pressure excuses that it is gone early is
// another question.
func (c *Checker) judge(r *retained, before, after time.Time, found story.Verb, err error) (broken string) {
	s := r.story(true)
	removed := r.remove(s, after, before)
	saw := story.Event{At: before, Until: after, What: found}
	switch found {
	case story.Whole:
		if before.After(s.Latest()) { // only then does it matter
			c.hinder(s, r)
		}
	case story.Partial:
		// It may have been moved away while it was read. What was not is not on its way.
		since := r.partialSince
		if since.IsZero() {
			since = before
		}
		if !removed && before.Sub(since) < moment {
			return ""
		}
		saw.Text = fmt.Sprintf("since %s: %v", story.Clock(since), err)
	}
	s.Add(saw)
	return s.Broken()
}

// nextLook is when to look again after a look near the deadline: once more just
// before it, and then again and again.
func (r *retained) nextLook(now time.Time) time.Time {
	attached := r.attachment().By != nil && r.attachment().Ended.IsZero() // it may end at any time
	if soon := r.mayGoFrom().Add(-dueInterval); r.seen && now.Before(soon) && !attached {
		return soon
	}
	return now.Add(dueInterval)
}

// byNext is a heap of what is to be looked at, the next one first.
type byNext []*retained

func (h byNext) Len() int           { return len(h) }
func (h byNext) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h byNext) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byNext) Push(x any)        { *h = append(*h, x.(*retained)) }
func (h *byNext) Pop() any          { return popLast((*[]*retained)(h)) }

// byAge is a heap in the order of unpublishing, which is the order in which the
// driver has to evict.
type byAge []*retained

func (h byAge) Len() int           { return len(h) }
func (h byAge) Less(i, j int) bool { return h[i].to.Before(h[j].to) }
func (h byAge) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byAge) Push(x any)        { *h = append(*h, x.(*retained)) }
func (h *byAge) Pop() any          { return popLast((*[]*retained)(h)) }

func popLast(h *[]*retained) *retained {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil // or the array would keep it alive
	*h = (*h)[:last]
	return r
}
