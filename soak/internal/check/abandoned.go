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

// abandoned is a volume that the kubelet will never unpublish.
type abandoned struct {
	volume *history.Volume
	// since is when it was abandoned.
	since time.Time
	// r is how its data is kept, if the driver retains it at once; nil if that does
	// not matter, because its presence was not reported.
	r *retained
}

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
	a := &abandoned{volume: v, since: now}
	spoilt := c.takeSpoilt(v)
	if !spoilt && !v.LastOK(history.Publish).IsZero() && v.Data != "" {
		removed := now
		for _, t := range v.Troubles() {
			if t.Kind == workload.PodRemoved && t.From.Before(removed) {
				removed = t.From
			}
		}
		// The driver counts from an unpublish, if it got one.
		if sent := v.FirstSent(history.Unpublish); !sent.IsZero() && sent.Before(removed) {
			removed = sent
		}
		until := removed.Add(c.cfg.lifespan(v))
		a.r = &retained{volume: v, from: removed, to: removed, earliest: until, deadline: until, lastWhole: removed}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned.add(a)
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
	for _, a := range turn {
		c.lookAtAbandoned(a)
	}
}

func (c *Checker) lookAtAbandoned(a *abandoned) {
	v, before := a.volume, time.Now()
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
	limit := c.limitOfAbandoned(a)
	switch {
	case touched && !mounted:
		// What is left is not the driver's doing.
		c.excuse(v)
	case !mounted && !there:
		if a.r != nil && a.r.judge(before, after, story.Gone) == goneEarly && !c.mayBeEvicted(a.r, after) {
			c.cfg.Findings.Add(c.durable(a.r.from, after), v, fmt.Sprintf(
				"it was published, and then its pod went; its data should be there until %s at least, and is gone at %s",
				a.r.earliest.Format(history.Clock), after.Format(history.Clock)))
		}
	case !limit.missed(before):
		if there && a.r != nil {
			a.r.lastWhole = before
		}
		return
	default:
		c.excuse(v)
		c.cfg.Findings.Add(history.NoLeak, v, fmt.Sprintf(
			"the kubelet never unpublishes it, so by %s nothing of it should be left, and at %s: mounted at its target %t, data directory there %t",
			limit.at.Format(history.Clock), after.Format(history.Clock), mounted, there))
	}
	c.noteOver(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned.remove(a)
}
