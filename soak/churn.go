package main

import (
	"context"
	"fmt"
	"sync"
)

// churn lets pods live and die, a number of them at a time.
type churn struct {
	plan    plan
	kubelet *kubelet
	watch   *watch
	// over is told how many pods are over, each time that one is. It has room
	// for all of them, so that nobody waits.
	over chan int
}

func newChurn(p plan, k *kubelet, w *watch) *churn {
	return &churn{plan: p, kubelet: k, watch: w, over: make(chan int, p.options.pods)}
}

// run returns when all pods are over, or the run is.
func (c *churn) run(ctx context.Context) {
	indices := make(chan int)
	var workers sync.WaitGroup
	for range c.plan.options.parallel {
		workers.Go(func() {
			for index := range indices {
				c.pod(ctx, c.plan.pod(index))
				c.kubelet.stats.update(func(s *stats) {
					s.pods++
					c.over <- s.pods
				})
			}
		})
	}
	for index := range c.plan.options.pods {
		select {
		case indices <- index:
		case <-ctx.Done():
		}
	}
	close(indices)
	workers.Wait()
}

// pod is the life of one pod. Its volumes go their ways at the same time, but
// the pod lives only once all of them are mounted.
func (c *churn) pod(ctx context.Context, p podPlan) {
	k := c.kubelet
	volumes := make([]*volume, len(p.volumes))
	for i, planned := range p.volumes {
		volumes[i] = newVolume(k.layout, p, planned)
	}
	k.stats.update(func(s *stats) { s.volumes += len(volumes) })

	born := forAll(volumes, func(v *volume) bool { return c.born(ctx, v) })
	// The end of the run is noticed in the next call.
	_ = sleep(ctx, p.life)
	over := forAll(volumes, func(v *volume) bool { return c.died(ctx, v) })
	if !born || !over || ctx.Err() != nil {
		return
	}
	if err := dismissPod(k.layout, p.uid); err != nil {
		k.findings.add(leftTarget, volumes[0], err.Error())
	}
}

// born publishes a volume and marks it.
func (c *churn) born(ctx context.Context, v *volume) bool {
	k := c.kubelet
	if err := v.prepare(); err != nil {
		k.findings.add(unfinished, v, err.Error())
		return false
	}
	if err := k.carryOut(ctx, v, v.plan.publish, k.publishOnce); err != nil {
		return false
	}
	v.published = true
	k.stats.update(func(s *stats) { s.published++ })
	if broken, err := v.mark(); err != nil {
		k.findings.add(broken, v, "after the publish: "+err.Error())
		return false
	}
	v.marked = true
	return true
}

// died unpublishes a volume, whatever became of its publish: a kubelet does so
// too when it is not sure. From then on the watch follows the marker.
func (c *churn) died(ctx context.Context, v *volume) bool {
	k := c.kubelet
	for _, dir := range []string{v.target, v.data} {
		if !v.marked {
			break
		}
		if state, err := v.look(dir); state != whole {
			k.findings.add(lostMarker, v, "while the pod lived: "+err.Error())
			v.marked = false
		}
	}
	if err := k.carryOut(ctx, v, v.plan.unpublish, k.unpublishOnce); err != nil {
		return false
	}
	if v.published {
		k.stats.update(func(s *stats) { s.published-- })
	}
	if v.marked {
		c.watch.add(v)
	}
	switch there, err := exists(v.target); {
	case err != nil:
		k.findings.add(leftTarget, v, "after the unpublish: "+err.Error())
		return false
	case there:
		k.findings.add(leftTarget, v, fmt.Sprintf("after the unpublish %s is still there", v.target))
		return false
	}
	if err := v.dismiss(); err != nil {
		k.findings.add(leftTarget, v, err.Error())
		return false
	}
	return true
}

// forAll calls f for all volumes at the same time and tells whether it was true
// for each.
func forAll(volumes []*volume, f func(*volume) bool) bool {
	results := make([]bool, len(volumes))
	var group sync.WaitGroup
	for i, v := range volumes {
		group.Go(func() { results[i] = f(v) })
	}
	group.Wait()
	for _, ok := range results {
		if !ok {
			return false
		}
	}
	return true
}
