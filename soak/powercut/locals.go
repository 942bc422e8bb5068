package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"

	"github.com/katbox/katbox/soak/internal/local"
	"github.com/katbox/katbox/soak/story"
)

const (
	// localNode is the node with local pools.
	localNode = "long"
	// localWorkers is how many pods with a local volume come and go at a time, for each pool.
	localWorkers = 2
)

// locals are the local pools of a node, with the controller and the pods that use them. A nil one stands for none.
type locals struct {
	controller *local.Controller
	player     *local.Player
	flags      []string
	pools      int
}

// newLocals makes a controller. What the daemon needs to reach it is of one boot; its pools are on the disk.
func newLocals(o options, prefix string, journal func(story.Event) error) (*locals, error) {
	if len(o.pools) == 0 {
		return nil, nil
	}
	c, err := local.Listen(filepath.Join(o.logs, "controller"))
	if err != nil {
		return nil, fmt.Errorf("start a controller: %w", err)
	}
	dir := filepath.Join(o.dir, localNode)
	socket := filepath.Join(dir, "local.sock")
	l := &locals{controller: c, pools: len(o.pools), flags: append(c.Flags(), "--local-endpoint", "unix://"+socket)}
	for class, backend := range o.pools {
		// The kubelet's directory is on the same disk.
		l.flags = append(l.flags, "--local-pool",
			fmt.Sprintf("%s=%s,backend=%s,on-root-disk", class, filepath.Join(dir, "pool-"+class), backend))
	}
	l.player, err = local.NewPlayer(local.Config{
		Controller: c, Socket: socket, Kubelet: filepath.Join(dir, "kubelet"), Pools: o.pools, FSType: "ext4", Prefix: prefix,
		Journal: journal,
	})
	return l, err
}

func (l *locals) close() {
	if l != nil {
		_ = l.controller.Close() // it had nothing to write
	}
}

// open waits for the pools.
func (l *locals) open(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return l.player.Open(ctx)
}

func (l *locals) workers() int {
	if l == nil {
		return 0
	}
	return l.pools * localWorkers
}

// workLocally lets one pod with a local volume live after the other.
func (c *churn) workLocally(ctx context.Context, l *locals, random *rand.Rand) {
	for ctx.Err() == nil {
		if err := c.liveLocally(ctx, l, random); err != nil && ctx.Err() == nil {
			c.fail("", fmt.Errorf("local volumes: %w", err))
		}
	}
}

func (c *churn) liveLocally(ctx context.Context, l *locals, random *rand.Rand) error {
	u, err := l.player.Begin(ctx, c.newPod(), random)
	if err != nil || u == nil {
		return err
	}
	for range 1 + random.IntN(3) {
		if c.quiet.wait(ctx) != nil {
			return nil
		}
		if err := u.Work(ctx); err != nil {
			return err
		}
	}
	if c.quiet.wait(ctx) != nil {
		return nil
	}
	return u.End(ctx)
}

// told reads an ack of a local volume.
func (l *locals) told(e story.Event) error {
	if l == nil {
		return fmt.Errorf("there are acks of local volumes: give the same --local as to the run")
	}
	return l.player.Told(e)
}

// standing prints what the acks promise.
func (l *locals) standing(out io.Writer) {
	if l != nil {
		fmt.Fprintln(out, l.player.Standing())
	}
}

// checkLocals sees every local volume to its end.
func (c *checker) checkLocals(ctx context.Context) error {
	if c.locals == nil {
		return nil
	}
	all, err := c.locals.player.Audit(ctx)
	for _, v := range all {
		c.findings.add("local volumes: "+v.What, v.Told)
	}
	return err
}
