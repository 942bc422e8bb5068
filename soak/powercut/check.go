package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/local"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
)

// check starts the daemons after the boot and sees every volume to its end. It
// returns how many violations there were; the error says that it could not check.
func check(ctx context.Context, o options, out io.Writer) (violations int, err error) {
	began := time.Now()
	text, err := os.ReadFile(o.acks)
	if err != nil {
		return 0, err
	}
	acks, err := parseAcks(string(text))
	if err != nil {
		return 0, err
	}
	byNewClock(acks, began)
	c := &checker{findings: &findings{out: out}}
	if c.locals, err = newLocals(o, "after", nil); err != nil {
		return 0, err
	}
	defer c.locals.close()
	for _, d := range nodes {
		n, err := newNode(o, d.name, o.lifespan, o.grace, c.locals)
		if err != nil {
			return 0, err
		}
		n.former = d.lifespan
		defer n.driver.Kill()
		c.nodes = append(c.nodes, n)
	}
	if err := c.read(o, acks); err != nil {
		return 0, err
	}
	if len(c.followers) == 0 {
		return c.findings.total, errors.New("the acks have no volume, so they prove nothing; cut later")
	}
	fmt.Fprintf(out, "%d acks: %s\n", len(acks), c.standing(began))
	c.locals.standing(out)
	if err := c.play(ctx, o, began); err != nil {
		return c.findings.total, err
	}
	c.judge()
	fmt.Fprintf(out, "%d violations, after %s\n", c.findings.total, time.Since(began).Round(time.Millisecond))
	return c.findings.total, nil
}

// checker is the second half.
type checker struct {
	nodes     []*node
	followers map[string]*follower
	locals    *locals
	findings  *findings
}

// read makes a story for each volume of the acks.
func (c *checker) read(o options, acks []story.Event) error {
	c.followers = make(map[string]*follower)
	for _, e := range acks {
		switch {
		case strings.HasPrefix(e.Volume, local.Root):
			if err := c.locals.told(e); err != nil {
				return err
			}
			continue
		case e.Volume != "":
		case e.What == story.Failed:
			c.findings.add("during the run: "+e.Text, nil)
			continue
		default:
			continue
		}
		f := c.followers[e.Volume]
		if f == nil {
			p, err := placeOf(c.nodes, e.Volume)
			if err != nil {
				return err
			}
			f = &follower{place: p, Story: story.New(o.tolerance)}
			c.followers[e.Volume] = f
		}
		f.Add(e)
		switch e.What {
		case story.Published:
			f.recorded = true
		case story.Attach:
			by := f.looker(e.Text)
			f.by, f.decided = &by, true
		case story.Detached:
			f.by = nil
		case story.LetGo, story.Decide:
			f.decided = true
		}
	}
	alone := make(map[string]int)
	for _, f := range c.followers {
		alone[f.Pod]++
	}
	for _, f := range c.followers {
		f.treatment = treat(f.Story, f.volume, alone[f.Pod] == 1 && f.Name != failing)
		if f.decided {
			f.treatment = treatWait
		}
		f.hold = 2*o.lifespan + 2*o.grace
	}
	return nil
}

// standing counts what the last words promise.
func (c *checker) standing(now time.Time) string {
	var published, without, retained, running, over int
	for _, f := range c.followers {
		switch {
		case f.Is(story.Live):
			published++
		case f.May(story.Live):
			without++
		case f.SeenGone():
			over++
		default:
			retained++
			if f.Earliest().After(now) {
				running++
			}
		}
	}
	return fmt.Sprintf("%d volumes, %d published, %d with a call without an answer, %d retained (%d of them before their deadline), %d gone",
		len(c.followers), published, without, retained, running, over)
}

// play is what happens after the boot, from the first look at the disk until
// there is nothing left.
func (c *checker) play(ctx context.Context, o options, booted time.Time) error {
	if err := c.checkMounts(o.dir); err != nil {
		return err
	}
	for _, f := range c.followers {
		f.cut(booted)
		if f.May(story.Live) {
			// Its pod is on the node, and a kubelet makes the directories of its
			// pods before anything else.
			if err := f.MakeTargetDir(); err != nil {
				return err
			}
		}
		if f.by != nil {
			if err := f.by.MakeTargetDir(); err != nil {
				return err
			}
		}
		f.look()
	}
	if err := start(ctx, c.nodes); err != nil {
		c.findings.add(err.Error(), nil)
		return nil
	}
	now := time.Now()
	var group sync.WaitGroup
	errs := make(chan error, len(c.followers)+1)
	group.Go(func() { errs <- c.checkLocals(ctx) })
	for _, f := range c.followers {
		f.Add(story.Event{At: now, What: story.Ready})
		group.Go(func() { errs <- f.follow(ctx) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	for _, f := range c.followers {
		f.look()
		f.Add(story.Event{At: time.Now(), What: story.Ended})
	}
	return c.finish(ctx, o)
}

// finish looks at what is left when all volumes are over, and ends the daemons.
func (c *checker) finish(ctx context.Context, o options) error {
	limit := time.Now().Add(o.tolerance)
	for _, n := range c.nodes {
		for {
			left, err := host.Remains(n.layout.Work, nil)
			if err != nil {
				return err
			}
			if len(left) == 0 {
				break
			}
			if time.Now().After(limit) {
				c.findings.add(fmt.Sprintf("all volumes of node %s are over, and there is still %q", n.name, left), nil)
				break
			}
			if err := pause.For(ctx, eagerPause); err != nil {
				return err
			}
		}
		if err := c.checkTombstones(ctx, n, limit); err != nil {
			return err
		}
		// What it says of calls and timers that its end cuts off is no news.
		if err := c.listen(n); err != nil {
			return err
		}
		if err := n.driver.Stop(); err != nil {
			c.findings.add(fmt.Sprintf("node %s: %v", n.name, err), nil)
		}
		select {
		case err := <-n.driver.Died():
			c.findings.add(fmt.Sprintf("node %s: %v", n.name, err), nil)
		default:
		}
	}
	return c.checkMounts(o.dir)
}

// checkMounts reports what is mounted.
func (c *checker) checkMounts(dir string) error {
	mounts, err := host.MountsBelow(dir)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		c.findings.add(m.Point+" is mounted", nil)
	}
	return nil
}

// judge reports every story that broke.
func (c *checker) judge() {
	for _, volume := range slices.Sorted(maps.Keys(c.followers)) {
		if f := c.followers[volume]; f.Broken() != "" {
			c.findings.befell(f, f.Broken())
		}
	}
}

// listen reports what a daemon said about broken things.
func (c *checker) listen(n *node) error {
	text, err := os.ReadFile(n.layout.Log)
	if err != nil {
		return err
	}
	for _, complaint := range complaints(string(text)) {
		var about *follower
		for _, f := range c.followers {
			if f.node == n && f.ID == complaint.volume {
				about = f
			}
		}
		if complaint.adopted && about != nil && !about.recorded {
			continue // the cut came before its record was on the disk, and its directory was
		}
		c.findings.befell(about, fmt.Sprintf("the daemon of node %s says: %s", n.name, complaint.line))
	}
	return nil
}
