package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

const (
	// pressureInterval is how often the oldest volumes are looked at under
	// pressure.
	pressureInterval = 250 * time.Millisecond
	// mostEvicted bounds how many are then looked at in a row.
	mostEvicted = 50
)

// stall is what the looks under pressure found since the last eviction: how many of them found the oldest volume still there.
type stall struct {
	evicted time.Time
	looks   int
}

// evictionSlack is how long an eviction may take beside the driver's measurements. With a short lifespan
// the volumes would expire before it is certain that none is evicted, so it is shorter then.
func evictionSlack(lifespan time.Duration) time.Duration {
	return min(5*time.Second, max(time.Second, lifespan/2))
}

// lookAtEvictions follows the evictions under pressure, from the oldest volume
// on, and reports when there should be one and is none.
func (c *Checker) lookAtEvictions() {
	if c.cfg.Headroom == 0 || c.pressure.current() == 1 {
		c.stall.looks = 0
		return
	}
	for range mostEvicted {
		r := c.oldest()
		if r == nil {
			return
		}
		before := time.Now()
		if !c.lookAtRetained(r) {
			c.mu.Lock()
			over := r.over
			c.mu.Unlock()
			if !over {
				return // partial, or another goroutine looks
			}
			continue
		}
		c.checkProgress(r, before)
		return
	}
}

// checkProgress reports that the oldest volume is still there although it should
// have been evicted a while ago, and nothing else was in that while. A while is not only a time: where the checker itself does
// not get to look half as often as it wants to, the driver gets as little done.
func (c *Checker) checkProgress(oldest *retained, now time.Time) {
	window := 3*c.cfg.PruneInterval + evictionSlack(c.cfg.Lifespan)
	from := now.Add(-window)
	low, high := c.pressure.extremes(from, now)
	c.mu.Lock()
	evicted := c.lastEvicted
	c.mu.Unlock()
	if !c.stall.evicted.Equal(evicted) {
		c.stall = stall{evicted: evicted}
	}
	c.stall.looks++
	switch {
	case high == 1,
		time.Duration(c.stall.looks)*pressureInterval < window/2,
		evicted.After(from), c.started.After(from),
		// One large volume may take long to erase.
		c.pressure.current() > low+doubt,
		oldest.to.Add(shortened(c.cfg.Lifespan, high+doubt)).After(from),
		c.cfg.Timeline.During(from.Add(-stoppedFor), now, workload.OpenFiles),
		c.cfg.Timeline.During(from, now, workload.DaemonKill, workload.SlowDisk, workload.MachineSlow):
		return
	}
	c.mu.Lock()
	c.lastEvicted = now // the next report comes after another while
	c.mu.Unlock()
	c.cfg.Findings.Add(history.FullDisk, oldest.volume, fmt.Sprintf(
		"under pressure, with a factor of %.2f at most since %s, it should have been evicted by %s as the oldest, "+
			"but it is still there at %s and nothing else was evicted",
		high, story.Clock(from), story.Clock(from), story.Clock(now)))
}
