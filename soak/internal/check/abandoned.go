package check

import (
	"fmt"
	"os"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// abandonedLooks is how many abandoned volumes are looked at in a second.
const abandonedLooks = 50

// Abandoned says that the kubelet will never unpublish a volume, because its
// publish failed for good or its pod was removed under the driver: the driver
// has to notice, and to retain what there is. It is also for volumes that were
// unpublished and have no marker to follow, because there was no room for it.
func (c *Checker) Abandoned(v *history.Volume) {
	c.mu.Lock()
	p := c.byVolume[v]
	c.mu.Unlock()
	if p != nil {
		c.forgetPublished(p)
	}
	now := time.Now()
	r := &retained{volume: v, abandoned: true, from: now, to: now.Add(c.orphanTime()), tolerance: c.cfg.Tolerance}
	// Without a publish that succeeded nothing is promised, and what was reported as lost is not missed again.
	spoilt := c.takeSpoilt(v)
	r.empty = spoilt || v.LastOK(history.Publish).IsZero()
	for _, t := range v.Troubles() {
		if t.Kind == workload.PodRemoved {
			r.from = earlier(r.from, t.From)
		}
	}
	// The driver counts from an unpublish, if it got one.
	if sent := v.FirstSent(history.Unpublish); !sent.IsZero() {
		r.from = earlier(r.from, sent)
	}
	lifespan := c.cfg.lifespan(v)
	r.earliest, r.deadline, r.lastWhole = r.from.Add(lifespan), r.to.Add(lifespan), r.from
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned.add(r)
	c.changeSibling(v, func(s *sibling) { s.retained = r })
}

// orphanTime is how long the driver may take to notice that a pod is gone: it
// looks now and then for the first time, and now and then until the grace is
// over, each time within half of the grace.
func (c *Checker) orphanTime() time.Duration { return 2*c.cfg.OrphanGrace + time.Second }

// lookAtSomeAbandoned looks at the next ones in turn.
func (c *Checker) lookAtSomeAbandoned(n int) {
	c.mu.Lock()
	turn := c.abandoned.next(n)
	c.mu.Unlock()
	for _, r := range turn {
		c.lookAtAbandoned(r)
	}
}

// lookAtAbandoned looks whether anything is left of a volume. It may be mounted for as long as its data may be there.
func (c *Checker) lookAtAbandoned(r *retained) {
	v, before := r.volume, time.Now()
	mounted, err := c.isMounted(v.Target)
	if err != nil {
		c.fail(err)
		return
	}
	there := false
	if v.Data != "" {
		_, err := os.Lstat(v.Data)
		there = err == nil
	}
	after := time.Now()
	touched := v.Troubled(time.Time{}, after, workload.VolumeRemoved, workload.VolumeSymlink)
	c.weigh(r, after)
	s := r.story(false)
	c.hinder(s, r)
	saw := story.Gone
	if mounted || there {
		saw = story.Whole
	}
	s.Add(story.Event{At: before, Until: after, What: saw})
	switch {
	case touched && !mounted:
		c.excuse(v) // what is left is not the driver's doing
	case saw == story.Gone:
		c.noteGone(v, after)
		if s.Broken() != "" && !c.mayBeEvicted(r, after) {
			c.cfg.Findings.Add(c.durable(r.from, after), v, "it was published, and then its pod went: "+s.Broken())
		}
	case s.Broken() == "":
		if there {
			r.lastWhole = before
		}
		return
	default:
		c.excuse(v)
		c.cfg.Findings.Add(history.NoLeak, v, fmt.Sprintf(
			"the kubelet never unpublishes it: %s (mounted at its target: %t, data directory: %t)", s.Broken(), mounted, there))
	}
	c.noteOver(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned.remove(r)
}
