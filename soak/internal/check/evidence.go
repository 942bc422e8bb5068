package check

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// underWay is for how long a deletion may go on that was decided together with another one.
const underWay = 2 * time.Second

// suspicion is a volume of a pod that failed and is gone by pressure, while one of a pod that
// succeeded was there.
type suspicion struct {
	gone   *history.Volume
	goneBy time.Time
	kept   *retained
	// at is when the other one is looked at: it may have been on its way out.
	at time.Time
}

// succeeded reports whether the driver was told that a volume's pod has succeeded, and told once:
// one that comes again ends again, and how is not told then.
func (c *Checker) succeeded(v *history.Volume) bool {
	return c.cfg.Outcomes && !v.Failed && !v.ToldAt().IsZero() && !c.cameAgain(v)
}

// suspect notes that a volume of a pod that failed was evicted, if one of a pod that succeeded had to go
// before it.
func (c *Checker) suspect(gone *retained, goneBy time.Time) {
	if !c.cfg.Outcomes || !gone.volume.Failed || gone.released() {
		return
	}
	kept := c.oldestSuccess()
	if kept == nil || !kept.to.Add(clearlyOlder).Before(gone.lastWhole) || c.mayNotKnow(kept, goneBy) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspicions = append(c.suspicions, suspicion{gone: gone.volume, goneBy: goneBy, kept: kept, at: goneBy.Add(underWay)})
}

// oldestSuccess is a retained volume whose pod has succeeded: the one that has been retained for longest,
// without those that the driver may be unable to delete.
func (c *Checker) oldestSuccess() *retained {
	for {
		c.mu.Lock()
		c.trimAges()
		if len(c.successes) == 0 {
			c.mu.Unlock()
			return nil
		}
		r := c.successes[0]
		c.mu.Unlock()
		if c.succeeded(r.volume) && !c.obstructed(r.volume) && r.volume.Release().Sent.IsZero() {
			return r
		}
		c.mu.Lock()
		if len(c.successes) > 0 && c.successes[0] == r {
			heap.Pop(&c.successes)
		}
		c.mu.Unlock()
	}
}

// mayNotKnow reports whether something may have kept the driver from learning how the pod of a volume ended, or
// from deleting it by a time, or whether it may have forgotten that.
func (c *Checker) mayNotKnow(r *retained, by time.Time) bool {
	told := r.volume.ToldAt()
	from := told.Add(-c.slack())
	return r.volume.PublishedSince(told) || c.cfg.Timeline.During(from, by, workload.DaemonKill, workload.KubeletRestart,
		workload.DiskFull, workload.NoInodes, workload.SlowDisk, workload.MachineSlow)
}

// judgeSuspicions looks whether the volumes of pods that succeeded are still there.
func (c *Checker) judgeSuspicions() {
	now := time.Now()
	var due []suspicion
	c.mu.Lock()
	for len(c.suspicions) > 0 && !c.suspicions[0].at.After(now) {
		due = append(due, c.suspicions[0])
		c.suspicions = c.suspicions[1:]
	}
	c.mu.Unlock()
	for _, s := range due {
		if !c.judgeSuspicion(s) {
			c.mu.Lock()
			c.suspicions = append(c.suspicions, s) // another look is under way, or half of it is there
			c.mu.Unlock()
		}
	}
}

// judgeSuspicion is false if the volume has to be looked at once more.
func (c *Checker) judgeSuspicion(s suspicion) bool {
	before, v := time.Now(), s.kept.volume
	whole := c.lookAtRetained(s.kept)
	c.mu.Lock()
	over := s.kept.over
	c.mu.Unlock()
	switch {
	case over, !before.Before(s.kept.mayGoFrom()), c.obstructed(v), !v.Release().Sent.IsZero(), !v.Removal().Sent.IsZero(),
		c.mayNotKnow(s.kept, before):
		return true
	case !whole:
		return false
	}
	c.cfg.Findings.Add(history.KeepsFailed, s.gone, fmt.Sprintf(
		"its pod failed, and it was evicted by %s, but volume %s, whose pod had succeeded before %s, is still there at %s",
		story.Clock(s.goneBy), v.ID, story.Clock(s.kept.to), story.Clock(before)))
	return true
}
