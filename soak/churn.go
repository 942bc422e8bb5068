package main

import (
	"context"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/misuse"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// churn lets pods live and die. It plays what is around a kubelet: the users
// who create pods, and the containers in them.
type churn struct {
	environment *environment
	node        *node
	// site is where the calls with bad input are made.
	site *misuse.Site
	// over is told how many pods are over, each time that one is. It has room
	// for all of them, so that no sender waits.
	over chan int
	// drained is closed when all pods of a drain are there.
	drained chan struct{}
	// afterlives are the faults that outlive a pod.
	afterlives sync.WaitGroup

	mu      sync.Mutex
	lives   map[*kubelet.Pod]*life
	arrived int
	ended   int
}

func newChurn(s *environment, n *node, site *misuse.Site) *churn {
	return &churn{
		environment: s,
		node:        n,
		site:        site,
		over:        make(chan int, s.plan.Workload().Pods),
		drained:     make(chan struct{}),
		lives:       make(map[*kubelet.Pod]*life),
	}
}

// run returns when all pods are over, or the run is.
func (c *churn) run(ctx context.Context) {
	w := c.environment.plan.Workload()
	room := make(chan struct{}, w.Parallel)
	began := time.Now()
	var pods sync.WaitGroup
	defer pods.Wait()
	for index := range w.Pods {
		planned := c.environment.plan.Pod(index)
		if pause.For(ctx, time.Until(began.Add(planned.Arrival))) != nil {
			return
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		pods.Go(func() {
			c.live(ctx, planned)
			<-room
			c.environment.report.Count.PodsOver.Add(1)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended++
			c.over <- c.ended
		})
	}
}

// live lets one pod live and die.
func (c *churn) live(ctx context.Context, planned workload.Pod) {
	l := newLife(c, planned)
	c.enter(l)
	defer c.leave(l)
	l.live(ctx)
}

// enter and leave keep account of the pods on the node.
func (c *churn) enter(l *life) {
	c.environment.report.Count.PodsRunning.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives[l.pod] = l
}

func (c *churn) leave(l *life) {
	c.environment.report.Count.PodsRunning.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lives, l.pod)
}

// arrive notes that a pod is as far as it comes before a drain.
func (c *churn) arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.arrived++
	if c.arrived == c.environment.plan.Workload().Pods {
		close(c.drained)
	}
}

// rest waits until the containers of a pod end: after its length or, in a drain,
// when all pods are there.
func (c *churn) rest(ctx context.Context, length time.Duration) error {
	if !c.environment.plan.Workload().Drain {
		return pause.For(ctx, length)
	}
	select {
	case <-c.drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// life is that of a pod, nil if it is over.
func (c *churn) life(p *kubelet.Pod) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lives[p]
}

// Called, Mounted, Unmounted and Gone make the churn a [kubelet.Listener].

// Called passes each answer on to those who count and judge it.
func (c *churn) Called(v *kubelet.Volume, call history.Call) {
	c.environment.calls.Add(1)
	c.environment.report.Called(call)
	c.environment.checker.Called(v.Story, call)
}

// Mounted lets the containers of a pod begin.
func (c *churn) Mounted(p *kubelet.Pod) {
	if l := c.life(p); l != nil {
		l.mounted()
	}
}

// Unmounted hands a volume over to those who follow it to its deadline.
func (c *churn) Unmounted(v *kubelet.Volume, how kubelet.Outcome) {
	if l := c.life(v.Pod); l != nil {
		l.unmounted(v, how)
	}
}

// Gone ends a pod's life.
func (c *churn) Gone(p *kubelet.Pod) {
	if l := c.life(p); l != nil {
		l.gone()
	}
}
