package check

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// clearlyOlder is by how much one unpublish has to be over before another is
// sent, for the driver to know their order.
const clearlyOlder = time.Second

// evictedTooSoon reports whether it breaks the order that one volume was gone by
// pressure while an older one was found whole by a look that began later.
func evictedTooSoon(gone, older *retained, goneBy, lookBegan time.Time) bool {
	return older.to.Add(clearlyOlder).Before(gone.from) && // older beyond doubt
		!lookBegan.Before(goneBy) && // there when the other was gone
		lookBegan.Before(older.mayGoFrom()) // and not by being late
}

// checkOrder looks whether an older volume is still there than the one that was
// evicted.
func (c *Checker) checkOrder(gone *retained, goneBy time.Time) {
	older := c.oldest()
	if older == nil || !older.to.Add(clearlyOlder).Before(gone.from) || c.succeeded(older.volume) { // see suspect
		return
	}
	before := time.Now()
	if !c.lookAtRetained(older) || !evictedTooSoon(gone, older, goneBy, before) || c.obstructed(older.volume) {
		return
	}
	c.cfg.Findings.Add(history.Durable, gone.volume, fmt.Sprintf(
		"evicted out of order: it was unpublished at %s and is gone, but volume %s, unpublished at %s, is still there at %s",
		story.Clock(gone.from), older.volume.ID, story.Clock(older.to), story.Clock(before)))
}

// oldest is the retained volume that the driver has to evict first. What
// something hinders it from deleting is left out.
func (c *Checker) oldest() *retained {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		c.trimAges()
		if len(c.ages) == 0 {
			return nil
		}
		if r := c.ages[0]; !c.obstructed(r.volume) {
			return r
		}
		heap.Pop(&c.ages)
	}
}

// obstructed reports whether the driver may be unable to delete a volume, or is to keep
// it for longer than others.
func (c *Checker) obstructed(v *history.Volume) bool {
	return v.Lifespan > c.cfg.Lifespan || !v.Pin().Sent.IsZero() || v.Attachment().By != nil ||
		v.Troubled(time.Time{}, time.Now(), workload.ForeignMount, workload.NestedMount, workload.VolumeRemoved, workload.VolumeSymlink)
}

// trimAges drops what is over from the tops. Its caller has the lock.
func (c *Checker) trimAges() {
	for _, ages := range []*byAge{&c.ages, &c.successes} {
		for len(*ages) > 0 && (*ages)[0].over {
			heap.Pop(ages)
		}
	}
}
