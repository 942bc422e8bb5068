package arrays

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// longReport is longer than a report waits that was refused.
const longReport = time.Minute

var seeds = flag.Int("seeds", 12, "how many random orders of calls are tried")

// TestAnyOrder: calls come in any order, repeated, doubled and given up, while servers hang, sessions are lost,
// steps fail and daemons are killed. What was answered holds, nothing is taken from a pod, and in the end nothing is
// left.
func TestAnyOrder(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(h *harness) {
				c := &chaos{harness: h, random: rand.New(rand.NewPCG(uint64(seed), 0)), published: map[string]bool{}}
				for range 60 {
					c.act()
				}
				c.settle()
			})
		})
	}
}

// chaos calls a node at random.
type chaos struct {
	*harness
	random *rand.Rand
	// published are the targets of which a publish has succeeded, and no unpublish has begun since.
	published map[string]bool
	log       []string
}

var pods = []string{"a", "b"}

// act does something, and lets things settle a bit.
func (c *chaos) act() {
	switch c.random.IntN(12) {
	case 0:
		c.fault()
	case 1:
		kill := c.random.IntN(2) == 0
		c.note("restart, kill: %t", kill)
		c.mend()
		c.restart(kill)
	case 2:
		c.mend()
	default:
		c.calls()
	}
	c.pass(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	c.hold()
}

func (c *chaos) note(format string, about ...any) {
	c.log = append(c.log, fmt.Sprintf(format, about...))
}

// fault makes something go wrong for a while.
func (c *chaos) fault() {
	server := []string{nas, targetA, targetB}[c.random.IntN(3)]
	switch c.random.IntN(5) {
	case 0, 1:
		c.note("%s is away", server)
		c.set(server, true)
	case 2:
		c.note("lose %s", server)
		c.lose(server)
	case 3:
		c.note("api down")
		c.locked(func() { c.apiDown = true })
	default:
		rate := 2 + c.random.IntN(8)
		own := rand.New(rand.NewPCG(c.random.Uint64(), 0))
		c.note("one change in %d fails", rate)
		c.locked(func() {
			c.fail = func(call string) error {
				if own.IntN(rate) == 0 {
					return errors.New(call + " fails for the test")
				}
				return nil
			}
		})
	}
}

// mend lets everything work.
func (c *chaos) mend() {
	c.note("all works")
	c.locked(func() { c.fail, c.apiDown = nil, false })
	for _, server := range []string{nas, targetA, targetB} {
		c.set(server, false)
	}
}

// calls makes one to three calls at the same time, perhaps for one volume, and perhaps given up.
func (c *chaos) calls() {
	type call struct {
		name, target string
		ask          func(ctx context.Context) error
		publishes    bool
	}
	var made []call
	id := kinds[c.random.IntN(len(kinds))]
	for range 1 + c.random.IntN(3) {
		if c.random.IntN(2) == 0 {
			id = kinds[c.random.IntN(len(kinds))]
		}
		pod := pods[c.random.IntN(len(pods))]
		id, target, node := id, podPath(id, pod), c.node
		switch c.random.IntN(6) {
		case 0, 1:
			made = append(made, call{name: "stage " + id, ask: func(ctx context.Context) error { return node.Stage(ctx, staging(id)) }})
		case 2, 3:
			made = append(made, call{"publish ", target, func(ctx context.Context) error { return node.Publish(ctx, publication(id, pod)) }, true})
		case 4:
			delete(c.published, target)
			made = append(made, call{"unpublish ", target, func(ctx context.Context) error { return node.Unpublish(ctx, id, target) }, false})
		default:
			made = append(made, call{name: "unstage " + id, ask: func(ctx context.Context) error { return node.Unstage(ctx, id, "/staging/"+id) }})
		}
		if c.random.IntN(4) == 0 {
			made = append(made, made[len(made)-1])
		}
	}
	ended := make(chan func(), len(made))
	limit := time.Duration(1+c.random.IntN(20)) * time.Second
	for _, m := range made {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			err := m.ask(ctx)
			ended <- func() {
				c.note("%s%s: %v", m.name, m.target, err)
				// A publish at the same time as an unpublish of the same target may have come first.
				unpublished := slices.ContainsFunc(made, func(o call) bool { return o.target == m.target && !o.publishes })
				if m.publishes && err == nil && !unpublished {
					c.published[m.target] = true
				}
			}
		}()
	}
	for range made {
		(<-ended)()
	}
}

// hold checks that what is published is mounted. Its disk may have gone.
func (c *chaos) hold() {
	c.Helper()
	for target := range c.published {
		if !c.isMounted(target) {
			c.Fatalf("not published any more: %s\n%s", target, strings.Join(c.log, "\n"))
		}
	}
	if c.Failed() {
		c.Fatalf("after\n%s", strings.Join(c.log, "\n"))
	}
}

// settle takes everything back, and lets nothing be left.
func (c *chaos) settle() {
	c.mend()
	c.pass(10 * time.Minute)
	for _, id := range kinds {
		for _, pod := range pods {
			if err := c.unpublish(id, pod); err != nil {
				c.Errorf("unpublish of %s: %v", podPath(id, pod), err)
			}
		}
		if err := c.unstage(id); err != nil {
			c.Errorf("unstage of %s: %v", id, err)
		}
	}
	c.pass(longReport)
	if left := c.leftovers(); len(left) > 0 {
		c.Errorf("left on the node: %q\n%s", left, strings.Join(c.log, "\n"))
	}
}
