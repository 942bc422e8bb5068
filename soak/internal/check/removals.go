package check

import (
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// removalMemory is how long a removal is remembered that may have taken another
// volume.
const removalMemory = time.Minute

// removal is a removal by a person, from its request to its answer.
type removal struct {
	volume *history.Volume
	from   time.Time
	// to is zero while it lasts.
	to time.Time
}

// BeginRemoval says that a person is about to ask the driver to remove a volume.
// The returned function judges the answer: the error is nil if the driver says
// that it is removed; how says why it is not.
func (c *Checker) BeginRemoval(v *history.Volume) (end func(how Failure, err error)) {
	v.BeginRemoval()
	began := &removal{volume: v, from: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removals = slices.DeleteFunc(c.removals, func(r *removal) bool {
		return !r.to.IsZero() && began.from.Sub(r.to) > removalMemory
	})
	c.removals = append(c.removals, began)
	return func(how Failure, err error) {
		v.EndRemoval(err)
		now := time.Now()
		c.mu.Lock()
		began.to = now
		c.mu.Unlock()
		if err != nil {
			c.checkRefused(v, began.from, history.Removes, "a removal", how, err)
		} else if r := c.follows(v); r != nil {
			c.lookAtRetained(r)
		}
	}
}

// remove tells a story that a person removed the volume, as far as that was asked by one time and answered by
// another. It reports whether it has to be gone.
func (r *retained) remove(s *story.Story, asked, answered time.Time) bool {
	if r.volume == nil {
		return false
	}
	removal := r.volume.Removal()
	if removal.Sent.IsZero() || removal.Sent.After(asked) {
		return false
	}
	s.Add(story.Event{At: removal.Sent, What: story.Delete})
	if removal.Done.IsZero() || removal.Done.After(answered) {
		return false
	}
	s.Add(story.Event{At: removal.Done, What: story.Deleted})
	return true
}

// besideRemoval reports whether another volume was removed between the two times.
func (c *Checker) besideRemoval(v *history.Volume, from, to time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.removals, func(r *removal) bool {
		return r.volume != v && !r.from.After(to) && (r.to.IsZero() || !r.to.Before(from))
	})
}
