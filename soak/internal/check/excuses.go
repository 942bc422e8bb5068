package check

import (
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// holdSlack is how long after a foreign mount is gone the driver may need for
// its next try: the first ones come after 10 s, then after 20.
const holdSlack = 25 * time.Second

// hindersDeletion reports whether a fault of the node keeps the driver from
// deleting in time.
func hindersDeletion(kind workload.FaultKind) bool {
	return kind == workload.DaemonKill || kind == workload.SlowDisk || kind == workload.MachineSlow
}

// hinder tells a story what kept the driver from deleting a volume until now: faults of the node, and what befell
// the volume.
func (c *Checker) hinder(s *story.Story, r *retained) {
	var all []story.Event
	putOff := func(from, to time.Time, more time.Duration) {
		all = append(all, story.Event{At: from, Until: to, What: story.Hindered, Lifespan: more + c.needs(r)})
	}
	for _, span := range c.cfg.Timeline.Spans() {
		if hindersDeletion(span.Kind) {
			putOff(span.From, span.To, 0)
		}
	}
	for _, t := range r.troubles() {
		switch t.Kind {
		case workload.ForeignMount:
			// The driver waits twice as long after each try.
			more := holdSlack
			if held := t.To.Sub(r.mayGoFrom()); !t.To.IsZero() && held > holdSlack {
				more = min(2*held, 10*time.Minute)
			}
			putOff(t.From, t.To, more)
		case workload.NestedMount, workload.BusyTarget:
			if r.abandoned {
				putOff(t.From, t.To, holdSlack)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b story.Event) int { return a.At.Compare(b.At) })
	for _, e := range all {
		s.Add(e)
	}
}

// needs is how long the driver may need to delete a volume that is due, when nothing hinders it any more. One that
// was restarted may count anew how long it misses a pod.
func (c *Checker) needs(r *retained) time.Duration {
	if r.abandoned {
		return c.orphanTime() + c.cfg.lifespan(r.volume) + c.cfg.Tolerance
	}
	return c.cfg.Tolerance
}

// limitOf is until when a retained volume may be there, by what happened until now.
func (c *Checker) limitOf(r *retained) time.Time {
	s := r.story(true)
	c.hinder(s, r)
	return s.Limit(time.Now())
}

// limitOfRemains is until when nothing may be left after the last volume is over.
func (c *Checker) limitOfRemains(over time.Time) time.Time {
	until := c.limitOf(&retained{from: over, to: over, earliest: over, deadline: over, tolerance: c.cfg.Tolerance})
	for _, r := range c.hindered {
		until = later(until, c.limitOf(r))
	}
	return until
}
