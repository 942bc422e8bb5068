package main

import (
	"context"
	"errors"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// holdFiles is a tenant of the disk that has the files of all retained volumes open while a pod fills it: to
// delete them makes no room. In the end the pod tidies up, and so does the tenant.
func (c *churn) holdFiles(ctx context.Context, f workload.PlannedFault) (err error) {
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
	over := c.environment.timeline.Begin(workload.DiskFull, "with open files")
	defer over()
	held, release := c.environment.checker.HoldFiles()
	defer release()
	var all content.Held
	defer func() { err = errors.Join(err, all.Close()) }()
	for _, v := range held {
		if err := all.Open(v.Data); err != nil {
			return err
		}
	}
	empty, err := content.FillDisk(ctx, l.pod.Volumes[0].Story.Target)
	if err != nil {
		return err
	}
	err = errors.Join(pause.For(ctx, f.For), empty())
	if err != nil {
		return err
	}
	l.each((*scratch).finish)
	l.finish(ctx)
	return nil
}
