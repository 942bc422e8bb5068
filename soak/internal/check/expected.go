package check

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

const (
	// staleAllowance is how long a list may still show a volume whose data is gone.
	staleAllowance = usualLateness
	// goneMemory is how long a volume is remembered whose data is gone.
	goneMemory = 10 * time.Minute
)

// acquaintance is what the checker knows of an inline volume of the run.
type acquaintance struct {
	volume *history.Volume
	// again says that it was known before, with an earlier story.
	again bool
	// retained is nil unless the volume is followed to its deadline.
	retained *retained
	// gone is when its data was found gone; zero if it was not.
	gone time.Time
}

// Expect says that the driver will be asked to publish a volume. It is called
// before the first call. A volume that is published again has a story of its own for
// that, see [Checker.Again].
func (c *Checker) Expect(v *history.Volume) {
	if v.Data == "" {
		return // a persistent volume is not retained
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[v.ID] = &acquaintance{volume: v, again: c.known[v.ID] != nil}
	c.expectOwned(v)
}

// noteRetained says that the checker follows a volume. Its caller has the lock.
func (c *Checker) noteRetained(r *retained) {
	if a := c.known[r.volume.ID]; a != nil {
		a.retained = r
	}
	c.changeSibling(r.volume, func(s *sibling) { s.retained = r })
}

// noteOver says that a volume is followed no more, because it is gone or because
// what is wrong with it was reported. Those that are gone for long it forgets.
func (c *Checker) noteOver(v *history.Volume) {
	_, err := os.Lstat(v.Data)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.gone) > 0 && now.Sub(c.gone[0].gone) > goneMemory {
		if old := c.gone[0]; c.known[old.volume.ID] == old {
			delete(c.known, old.volume.ID)
		}
		c.gone = c.gone[1:]
	}
	a := c.known[v.ID]
	if a == nil || a.volume != v {
		return
	}
	a.retained = nil
	if a.gone.IsZero() && errors.Is(err, fs.ErrNotExist) {
		a.gone = now
		c.gone = append(c.gone, a)
	}
}

// follows returns how the checker follows a retained volume; nil if it is over.
func (c *Checker) follows(v *history.Volume) *retained {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.known[v.ID]
	if a == nil || a.volume != v || a.retained == nil || a.retained.over {
		return nil
	}
	return a.retained
}

// Again says that retained volumes are about to be published again: they are not
// followed any more. It is false if one of them is over, or may go before.
func (c *Checker) Again(volumes ...*history.Volume) bool {
	var all []*retained
	for _, v := range volumes {
		r := c.follows(v)
		if r == nil || !c.certain(r) {
			return false
		}
		all = append(all, r)
	}
	for _, r := range all {
		c.settle(r, func(*Counts) {})
	}
	return len(all) > 0
}

// MayHaveGone reports whether the driver was permitted to delete a retained volume
// until now, one that was followed before.
func (c *Checker) MayHaveGone(v *history.Volume) bool {
	return c.mayGo(newRetained(v, c.cfg), time.Now())
}

// PublishedAgain reports whether a volume was published again after its story ended.
func (c *Checker) PublishedAgain(v *history.Volume) bool {
	c.mu.Lock()
	a := c.known[v.ID]
	c.mu.Unlock()
	return a != nil && a.volume != v && !a.volume.LastOK(history.Publish).IsZero()
}

// IsPublished reports whether the data of a volume has to be there for a pod, now.
func (c *Checker) IsPublished(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.known[id]
	return a != nil && c.byVolume[a.volume] != nil
}

// mayGo reports whether anything permits the driver to delete a volume that was
// retained when a look began, by the given time: its deadline, a person, a fault
// pressure, or others of its owner.
func (c *Checker) mayGo(r *retained, by time.Time) bool {
	c.weigh(r, by)
	s := r.story(true)
	r.remove(s, by, by)
	return s.MayBeGone(by) || len(r.volume.Troubles()) > 0 || c.mayBeEvictedBy(r, by)
}

// mayBeEvictedBy is mayBeEvicted for those who are not looking at the volume.
func (c *Checker) mayBeEvictedBy(r *retained, gone time.Time) bool {
	c.mu.Lock()
	now := retained{volume: r.volume, from: r.from, lastWhole: r.lastWhole}
	c.mu.Unlock()
	return c.mayBeEvicted(&now, gone)
}

// certain reports whether a volume is retained beyond doubt: it has to be, and its
// data is in its place.
func (c *Checker) certain(r *retained) bool {
	found, _ := c.cfg.Look(r.volume, r.volume.Data)
	after := time.Now()
	c.mu.Lock()
	over := r.over
	c.mu.Unlock()
	return !over && found == story.Whole && !c.mayGo(r, after)
}

// Follows reports whether a volume is retained, as far as the checker knows.
func (c *Checker) Follows(v *history.Volume) bool { return c.follows(v) != nil }
