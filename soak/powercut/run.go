package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

const (
	// workers is how many pods come and go at a time on each node.
	workers = 6
	// longGrace keeps the daemons from looking for orphans while pods churn.
	longGrace = 10 * time.Minute
)

// run churns until ctx ends, or the power.
func run(ctx context.Context, o options, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := &churn{acks: &journal{out: out}, seed: o.seed, stop: stop}
	locals, err := newLocals(o, fmt.Sprintf("%x", o.seed), c.acks.add)
	if err != nil {
		return err
	}
	defer locals.close()
	for _, d := range nodes {
		n, err := newNode(o, d.name, d.lifespan, longGrace, locals)
		if err != nil {
			return err
		}
		if n.pods, err = kubelet.StartPodsAPI(n.layout.Kubelet, daemon.Name); err != nil {
			return err
		}
		defer n.pods.Stop()
		defer n.driver.Kill()
		c.nodes = append(c.nodes, n)
	}
	if err := start(ctx, c.nodes); err != nil {
		return err
	}
	if err := locals.open(ctx); err != nil {
		return err
	}
	if err := c.acks.add(story.Event{What: note, Text: fmt.Sprintf("seed %d", o.seed)}); err != nil {
		return err
	}
	c.group.Go(func() { c.quiet.come(ctx, rand.New(rand.NewPCG(o.seed, 0))) })
	for w := range locals.workers() {
		c.group.Go(func() { c.workLocally(ctx, locals, rand.New(rand.NewPCG(o.seed, uint64(1000+w)))) })
	}
	for i, n := range c.nodes {
		for w := range workers {
			c.group.Go(func() { c.work(ctx, n, rand.New(rand.NewPCG(o.seed, uint64(1+i*workers+w)))) })
		}
		c.group.Go(func() {
			select {
			case err := <-n.driver.Died():
				c.fail("", err)
			case <-ctx.Done():
			}
		})
	}
	<-ctx.Done()
	c.group.Wait()
	return context.Cause(ctx)
}

// start starts the daemons, all at the same time.
func start(ctx context.Context, all []*node) error {
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, n := range all {
		group.Go(func() { errs[i] = n.driver.Start(ctx) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("node %s: %w", all[i].name, err)
		}
	}
	return nil
}

// churn is pods that come, write and go.
type churn struct {
	acks  *journal
	nodes []*node
	seed  uint64
	stop  context.CancelCauseFunc
	group sync.WaitGroup
	quiet quiet

	mu   sync.Mutex
	pods uint64
}

// fail tells of something that should not be, and ends the run. What ends with
// the run is no news.
func (c *churn) fail(volume string, err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	c.stop(fmt.Errorf("volume %s: %s", volume, text))
	// If even that fails it cannot be reported.
	_ = c.acks.add(story.Event{Volume: volume, What: story.Failed, Text: text})
}

// newPod returns the UID of another pod.
func (c *churn) newPod() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(c.seed), c.pods)
}

// work lets one pod after the other live on a node.
func (c *churn) work(ctx context.Context, n *node, random *rand.Rand) {
	for ctx.Err() == nil {
		pod := c.newPod()
		var volumes sync.WaitGroup
		for _, name := range [][]string{{"a"}, {"a", "b"}, {failing}}[random.IntN(3)] {
			l := &life{churn: c, place: n.place(pod, name), random: rand.New(rand.NewPCG(random.Uint64(), 0))}
			volumes.Go(func() { l.live(ctx) })
		}
		if random.IntN(4) == 0 {
			// This one stays for a while, and others come meanwhile.
			if pause.For(ctx, time.Second) != nil {
				return
			}
			continue
		}
		volumes.Wait()
	}
}
