package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// BeginPin says that a person is about to ask the driver to keep a volume for a time.
// The returned function judges the answer, as that of BeginRemoval does. It is nil if
// the volume is over, or the driver's wall clock is another than the person's, which
// a pin is told by.
func (c *Checker) BeginPin(v *history.Volume, length time.Duration) (until time.Time, end func(how Failure, err error)) {
	from := time.Now()
	if c.cfg.Timeline.During(c.started, from, workload.ClockStep) || !c.Follows(v) {
		return time.Time{}, nil
	}
	until = from.Add(length)
	c.mu.Lock()
	c.pinsSent = true
	c.mu.Unlock()
	v.BeginPin(until)
	return until, func(how Failure, err error) {
		if err == nil && c.cfg.Timeline.During(from, time.Now(), workload.ClockStep) {
			v.Note("the wall clock stepped meanwhile, so that nothing is certain")
			return
		}
		v.EndPin(err)
		if err != nil {
			c.checkRefused(v, from, history.Holds, "a pin", how, err)
		}
	}
}

// BeginRelease says that a person is about to ask the driver to let a volume go. The
// returned function judges the answer; it is nil if the volume is over.
func (c *Checker) BeginRelease(v *history.Volume) (end func(how Failure, err error)) {
	if !c.Follows(v) {
		return nil
	}
	from := time.Now()
	v.BeginRelease()
	return func(how Failure, err error) {
		v.EndRelease(err)
		if err != nil {
			c.checkRefused(v, from, history.Holds, "a release", how, err)
		}
	}
}

// pinned reports whether the driver has said that it keeps the volume beyond its
// lifespan.
func (r *retained) pinned() bool { return r.volume != nil && !r.volume.Pin().Done.IsZero() }

// released reports whether the driver may have been told to let the volume go.
func (r *retained) released() bool { return r.volume != nil && !r.volume.Release().Sent.IsZero() }

// broken is the promise that is broken if a volume goes, or stays, at a time: that of a removal if there was one, that
// of a person's decision if its lifespan alone would allow it, that of a pod that has attached it if both would, and
// that of what failed if it would be right after a success. That of its owner it is if others of that may be why.
func (c *Checker) broken(r *retained, at time.Time) history.Promise {
	if done := r.volume.Removal().Done; !done.IsZero() && !done.After(at) {
		return history.Removes
	}
	if at.Before(r.mayGoFrom()) && !at.Before(r.permitted()) {
		return history.Attached
	}
	if r.pinned() && !at.Before(r.earliest) || r.released() && at.Before(r.deadline.Add(r.tolerance)) {
		return history.Holds
	}
	if !r.surplusNow().must.IsZero() || at.Before(r.earliest) && c.cfg.MaxPerOwner.Last > 0 && !r.volume.Owning().Sent.IsZero() {
		return history.PerOwner
	}
	if v := r.volume; v.OnFailure && v.Failed && at.Before(r.earliest) && !at.Before(r.from.Add(r.grace)) {
		return history.KeepsFailed
	}
	return c.durable(r.from, at)
}

// checkRefused reports a decision about a retained volume that the driver refused
// without an excuse.
func (c *Checker) checkRefused(v *history.Volume, from time.Time, promise history.Promise, what string, how Failure, err error) {
	now, r := time.Now(), c.follows(v)
	if r != nil {
		c.weigh(r, now)
	}
	switch {
	case c.cfg.Timeline.During(from, now, workload.DaemonKill):
	case how == Unserved && c.cfg.Timeline.During(from, now, workload.SlowDisk, workload.MachineSlow):
	case how != Refused && c.cfg.Timeline.During(from, now, workload.DiskFull, workload.NoInodes):
	case how == Absent && (r == nil || now.After(r.mayGoFrom()) || c.mayBeEvictedBy(r, now)):
	default:
		c.cfg.Findings.Add(promise, v, fmt.Sprintf("it is retained, but %s sent at %s failed at %s: %v",
			what, story.Clock(from), story.Clock(now), err))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
