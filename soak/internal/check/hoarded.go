package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// What pods attach makes no room for others, so that it is bounded: as what is pinned, by a share of the disk.

// hoarded is what a pod that attaches a volume keeps from going.
type hoarded struct {
	by    *history.Volume
	bytes int64
}

// has reports whether the pod may have had the volume attached at a time.
func (h hoarded) has(at time.Time) bool {
	ended := h.by.FirstSent(history.Unpublish)
	return ended.IsZero() || ended.After(at)
}

const (
	// hoardKept is for how long it is of interest what was attached: longer than a call takes.
	hoardKept = time.Minute
	// hoardSlack is by how much a driver may come to more than the checker: it does not see at once what is attached.
	hoardSlack = 4
)

// judgeHoard judges that a pod got a volume that it attaches.
func (c *Checker) judgeHoard(by *history.Volume) {
	bound, ok := c.mostHoarded()
	if !ok {
		return
	}
	took := c.cfg.Taken(by.Attaches.Data)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, repeated := c.hoard[by.ID]; repeated {
		return
	}
	if before := c.hoardedCertainly(); before > bound {
		c.cfg.Findings.Add(history.Attached, by, fmt.Sprintf(
			"at %s it was attached, and pods had volumes of %d bytes attached already: all may have %d",
			story.Clock(time.Now()), before, bound))
	}
	c.hoard[by.ID] = hoarded{by, took}
}

// hoardedCertainly is what pods have attached, at least. A driver that has not measured a volume cannot count it:
// of each namespace the largest one is left out. Its caller has the lock.
func (c *Checker) hoardedCertainly() (sum int64) {
	largest, now := map[string]int64{}, time.Now()
	for id, h := range c.hoard {
		if !h.has(now.Add(-hoardKept)) {
			delete(c.hoard, id)
		}
		if !h.has(now) {
			continue
		}
		sum += h.bytes
		largest[h.by.Namespace] = max(largest[h.by.Namespace], h.bytes)
	}
	for _, bytes := range largest {
		sum -= bytes
	}
	return sum
}

// mayBeTooMuch reports whether a driver may have refused to attach a volume because others were.
func (c *Checker) mayBeTooMuch(by *history.Volume, call history.Call) bool {
	bound, ok := c.mostHoarded()
	if !ok {
		return false
	}
	sum := c.cfg.Taken(by.Attaches.Data)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hoard {
		if h.has(call.From) {
			sum += h.bytes
		}
	}
	return hoardSlack*sum > bound || c.pinsSent
}

// mostHoarded is how many bytes pods may have attached; false if that is not known.
func (c *Checker) mostHoarded() (int64, bool) {
	if c.cfg.MaxPinned == 0 {
		return 0, false
	}
	s, err := c.cfg.Disk()
	if err != nil {
		c.fail(err)
		return 0, false
	}
	return int64(c.cfg.MaxPinned * float64(s.TotalBytes)), true
}
