package check

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

const (
	// measureInterval is how often the checker measures the disk.
	measureInterval = 50 * time.Millisecond
	// slice is the time for which one lowest and one highest factor are kept.
	slice = time.Second
	// doubt is by how much the driver may have found the factor lower: it
	// measures in other moments.
	doubt = 0.05
	// scarce is the share of the disk that may be too little for a volume.
	scarce = 0.02
)

const (
	// floorShare is the part of the headroom that is the floor, brinkShare the part with which pinned
	// volumes may go.
	floorShare, brinkShare = 0.5, 0.25
	// speedMemory is how long it may remember how fast they did.
	speedMemory = 15 * time.Second
)

// free is how much of the headroom is free: 1 is all of it; the smaller of what bytes and inodes give.
func free(s Space, headroom float64) float64 {
	of := func(free, total uint64) float64 {
		wanted := math.Ceil(float64(total) * headroom)
		if float64(free) >= wanted {
			return 1
		}
		return float64(free) / wanted
	}
	return min(of(s.FreeBytes, s.TotalBytes), of(s.FreeInodes, s.TotalInodes))
}

// factor is by how much lifespans shrink with so much of the headroom free: 1 with all of it, 0 at a floor.
func factor(free, floor float64) float64 {
	switch {
	case free >= 1:
		return 1
	case free <= floor:
		return 0
	}
	return (free - floor) / (1 - floor)
}

// raised is how high writers may have raised the floor: by what they wrote in the fastest second of late.
func (p *pressure) raised(at time.Time, s Space, headroom float64, reaction time.Duration) float64 {
	p.recent = append(p.recent, spaceAt{at, s.FreeBytes, s.FreeInodes})
	for at.Sub(p.recent[0].at) > time.Second {
		p.recent = p.recent[1:]
	}
	of := func(total uint64, freeOf func(spaceAt) uint64) float64 {
		if total == 0 {
			return 0
		}
		most := uint64(0)
		for _, s := range p.recent {
			most = max(most, freeOf(s))
		}
		lost := float64(most - freeOf(p.recent[len(p.recent)-1]))
		return lost * reaction.Seconds() / math.Ceil(float64(total)*headroom)
	}
	now := max(of(s.TotalBytes, func(s spaceAt) uint64 { return s.bytes }), of(s.TotalInodes, func(s spaceAt) uint64 { return s.inodes }))
	if now >= p.fastest || at.Sub(p.fastestAt) > speedMemory {
		p.fastest, p.fastestAt = now, at
	}
	return min(1, max(floorShare, p.fastest))
}

// spaceAt is what was free at a time.
type spaceAt struct {
	at            time.Time
	bytes, inodes uint64
}

// tight reports whether there may be too little room for a volume.
func tight(s Space) bool {
	of := func(free, total uint64) bool { return total > 0 && float64(free) < scarce*float64(total) }
	return of(s.FreeBytes, s.TotalBytes) || of(s.FreeInodes, s.TotalInodes)
}

// pressure remembers how full the disk was. The zero value remembers nothing.
type pressure struct {
	mu     sync.Mutex
	slices []measured
	now    float64
	known  bool
	// recent are the samples of the last second, fastest is the largest part of the headroom that was
	// written in a second of late, and when.
	recent    []spaceAt
	fastest   float64
	fastestAt time.Time
}

// measured is what was measured from one moment on, for a slice of time.
type measured struct {
	from, to  time.Time
	low, high float64
	// least is the smallest part of the headroom that was free.
	least  float64
	noRoom bool
}

// add notes which factors are possible at a time, later than all before, and with how much of the
// headroom free, and forgets what is older than keep.
func (p *pressure) add(at time.Time, low, high, free float64, noRoom bool, keep time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.known = high, true
	if n := len(p.slices); n > 0 && at.Sub(p.slices[n-1].from) < slice {
		s := &p.slices[n-1]
		s.to, s.low, s.high, s.noRoom = at, min(s.low, low), max(s.high, high), s.noRoom || noRoom
		s.least = min(s.least, free)
		return
	}
	if old := p.first(at.Add(-keep)); old > 1024 {
		p.slices = slices.Delete(p.slices, 0, old)
	}
	p.slices = append(p.slices, measured{from: at, to: at, low: low, high: high, least: free, noRoom: noRoom})
}

// first is the place of the first slice that is not over at the time.
func (p *pressure) first(at time.Time) int {
	return sort.Search(len(p.slices), func(i int) bool { return !p.slices[i].to.Before(at) })
}

// extremes returns the lowest and the highest factor between two times; 1 if
// nothing was measured.
func (p *pressure) extremes(from, to time.Time) (low, high float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	low, high = 1, 0
	i := p.first(from)
	for ; i < len(p.slices) && !p.slices[i].from.After(to); i++ {
		low, high = min(low, p.slices[i].low), max(high, p.slices[i].high)
	}
	if high == 0 && low == 1 {
		high = 1
	}
	return low, high
}

// least is the smallest part of the headroom that was free between two times; 1 if nothing was measured.
func (p *pressure) least(from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	least := 1.0
	for i := p.first(from); i < len(p.slices) && !p.slices[i].from.After(to); i++ {
		least = min(least, p.slices[i].least)
	}
	return least
}

// noRoom reports whether the disk had too little room at any time between.
func (p *pressure) noRoom(from, to time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.first(from); i < len(p.slices) && !p.slices[i].from.After(to); i++ {
		if p.slices[i].noRoom {
			return true
		}
	}
	return false
}

// current is the factor that was measured last.
func (p *pressure) current() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return 1
	}
	return p.now
}

// measure notes how full the disk is.
func (c *Checker) measure() {
	s, err := c.cfg.Disk()
	if err != nil {
		c.fail(fmt.Errorf("measure the disk: %w", err))
		return
	}
	now, free := time.Now(), free(s, c.cfg.Headroom)
	low := factor(free, c.pressure.raised(now, s, c.cfg.Headroom, c.cfg.Reaction))
	c.pressure.add(now, low, factor(free, floorShare), free, tight(s), c.cfg.Lifespan+c.cfg.Tolerance+time.Minute)
}

// lowest is the lowest factor that the driver can have known at some time
// between the two.
func (c *Checker) lowest(from, to time.Time) float64 {
	if c.cfg.Headroom == 0 {
		return 1
	}
	from, full := c.knowable(from, to)
	if full {
		return 0
	}
	low, _ := c.pressure.extremes(from, to)
	return low
}

// leastFree is the same of the part of the headroom that was free.
func (c *Checker) leastFree(from, to time.Time) float64 {
	if c.cfg.Headroom == 0 {
		return 1
	}
	from, full := c.knowable(from, to)
	if full {
		return 0
	}
	return c.pressure.least(from, to)
}

// knowable returns since when the driver can have measured what it went by between two times, and whether the
// disk may have been full.
func (c *Checker) knowable(from, to time.Time) (since time.Time, full bool) {
	window := c.slack()
	if c.cfg.Timeline.During(from.Add(-window), to, workload.SlowDisk, workload.MachineSlow) {
		// A measurement or a deletion may have been under way all the while.
		window = 4*window + 10*time.Second
	}
	from = from.Add(-window)
	// It may have been fuller between our measurements.
	return from, c.cfg.Timeline.During(from, to, workload.DiskFull, workload.NoInodes)
}

// mayBeEvicted reports whether pressure excuses that a volume was gone by the
// given time.
func (c *Checker) mayBeEvicted(r *retained, gone time.Time) bool {
	low := c.lowest(r.lastWhole, gone)
	switch {
	case gone.Before(r.attachedUntil()):
		return false
	case r.pinned():
		return c.leastFree(r.lastWhole, gone) <= brinkShare+doubt // the disk is all but full
	case r.released(), c.succeeded(r.volume):
		return low < 1 // they go when another volume is due
	}
	return low < 1 && !gone.Before(r.from.Add(shortened(c.cfg.lifespan(r.volume), low-doubt)))
}

func shortened(lifespan time.Duration, factor float64) time.Duration {
	return time.Duration(float64(lifespan) * max(0, min(1, factor)))
}

// pressureText says what pressure could have excused; nothing without pressure.
func (c *Checker) pressureText(r *retained, gone time.Time) string {
	low := c.lowest(r.lastWhole, gone)
	if low == 1 {
		return ""
	}
	return fmt.Sprintf(", or %s under the highest pressure since it was last seen, with a factor of %.2f",
		story.Clock(r.from.Add(shortened(c.cfg.lifespan(r.volume), low))), low)
}
