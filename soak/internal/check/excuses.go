package check

import (
	"time"

	"github.com/katbox/katbox/soak/internal/workload"
)

// holdSlack is how long after a foreign mount is gone the driver may need for
// its next try: the first ones come after 10 s, then after 20.
const holdSlack = 25 * time.Second

// limit is a moment by which something has to be done, and which is put off by
// what makes it impossible.
type limit struct {
	at time.Time
	// open says that what puts it off lasts.
	open bool
}

// putOff takes account of a hindrance between two times, the second of which is
// zero while it lasts: the driver may need some time after it. One that began
// when the time was over is none.
func (l *limit) putOff(from, to time.Time, needs time.Duration) {
	switch {
	case from.After(l.at):
	case to.IsZero():
		l.open = true
	case to.Add(needs).After(l.at):
		l.at = to.Add(needs)
	}
}

func (l *limit) missed(now time.Time) bool { return !l.open && now.After(l.at) }

// hindersDeletion reports whether a fault of the node keeps the driver from
// deleting in time.
func hindersDeletion(kind workload.FaultKind) bool {
	return kind == workload.DaemonKill || kind == workload.SlowDisk || kind == workload.MachineSlow
}

// limitOf is until when a retained volume may be kept, by what happened.
func (c *Checker) limitOf(r *retained) limit {
	l := limit{at: r.goneBy()}
	for _, s := range c.cfg.Timeline.Spans() {
		if hindersDeletion(s.Kind) {
			l.putOff(s.From, s.To, c.cfg.Tolerance)
		}
	}
	for _, t := range r.volume.Troubles() {
		if t.Kind != workload.ForeignMount {
			continue
		}
		// The driver waits twice as long after each try.
		needs := holdSlack
		if held := t.To.Sub(r.mayGoFrom()); !t.To.IsZero() && held > holdSlack {
			needs = min(2*held, 10*time.Minute)
		}
		l.putOff(t.From, t.To, needs+c.cfg.Tolerance)
	}
	return l
}

// limitOfRemains is until when nothing may be left after the last volume is over.
func (c *Checker) limitOfRemains(over time.Time) time.Time {
	until := limit{at: over.Add(c.cfg.Tolerance)}
	for _, s := range c.cfg.Timeline.Spans() {
		if hindersDeletion(s.Kind) {
			until.putOff(s.From, s.To, c.cfg.Tolerance)
		}
	}
	for _, r := range c.hindered {
		if l := c.limitOf(r); l.at.After(until.at) {
			until.at = l.at
		}
	}
	return until.at
}

// limitOfAbandoned is until when everything of an abandoned volume has to be
// gone: a driver that was restarted may count anew how long it misses the pod.
func (c *Checker) limitOfAbandoned(a *abandoned) limit {
	needs := c.orphanTime() + c.cfg.lifespan(a.volume) + c.cfg.Tolerance
	l := limit{at: a.since.Add(needs)}
	for _, s := range c.cfg.Timeline.Spans() {
		hinders := hindersDeletion(s.Kind)
		if hinders && (s.To.IsZero() || s.To.After(a.since)) {
			l.putOff(s.From, s.To, needs)
		}
	}
	for _, t := range a.volume.Troubles() {
		switch t.Kind {
		case workload.ForeignMount, workload.NestedMount, workload.BusyTarget:
			l.putOff(t.From, t.To, holdSlack+needs)
		}
	}
	return l
}
