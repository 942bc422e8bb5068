package main

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// roomInterval is how often it is asked whether there is room again.
const roomInterval = 100 * time.Millisecond

// filler uses up all there is of something in a directory, until release is
// called.
type filler func(ctx context.Context, dir string) (release func() error, err error)

// fillDisk lets a pod of its own fill the disk, for the length of the fault. Every
// other such pod tidies up then. What the others wrote stays, and it is the
// driver that has to make room; without a headroom it never would, so there each
// pod tidies up.
func (c *churn) fillDisk(ctx context.Context, f workload.PlannedFault, fill filler) error {
	l := newLife(c, c.environment.plan.Filler(f))
	c.enter(l)
	defer c.leave(l)
	defer l.gone()
	c.environment.api.Create(l.pod)
	if !wait(ctx, l.isMounted) {
		return context.Cause(ctx)
	}
	l.each((*scratch).begin)
	end := c.environment.timeline.Begin(f.Kind, "")
	defer end()
	release, err := fill(ctx, l.pod.Volumes[0].Story.Target)
	if err != nil {
		return err
	}
	err = pause.For(ctx, f.For)
	keep := f.Choice%2 == 0 && c.environment.plan.Workload().Driver.Headroom > 0
	if !keep {
		if err := release(); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	l.each((*scratch).finish)
	l.finish(ctx)
	if keep {
		return c.awaitRoom(ctx)
	}
	return nil
}

// awaitRoom waits until the disk is no longer fuller than the headroom allows.
// That it takes too long is for the checker to say.
func (c *churn) awaitRoom(ctx context.Context) error {
	headroom := c.environment.plan.Workload().Driver.Headroom
	return pause.Until(ctx, roomInterval, func() (bool, error) {
		s, err := c.environment.disk.Free()
		return err != nil || enough(s.FreeBytes, s.TotalBytes, headroom) && enough(s.FreeInodes, s.TotalInodes, headroom), err
	})
}

// enough reports whether the share is free; without a limit it always is.
func enough(free, total int64, share float64) bool {
	return total == 0 || float64(free) >= float64(total)*share
}
