package local

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/pools"
)

// whole is all that is done to volumes and snapshots.
var whole = []struct {
	name string
	ask  func(h *harness) error
}{
	{"make", func(h *harness) error { return h.create("v", gib) }},
	{"stage", func(h *harness) error { return h.stage("v") }},
	{"publish", func(h *harness) error { return h.publish("v", "a") }},
	{"grow", func(h *harness) error { _, err := h.node.GrowVolume(h.bounded(), fast, "v", 2*gib); return err }},
	{"snapshot", func(h *harness) error { return h.snap("s", "v") }},
	{"unpublish", func(h *harness) error { return h.unpublish("v", "a") }},
	{"unstage", func(h *harness) error { return h.unstage("v") }},
	{"clone", func(h *harness) error {
		_, err := h.node.CreateVolume(h.bounded(), fast, cloneOf("w", "v"))
		return err
	}},
	{"comment", func(h *harness) error {
		retained := pools.Comment{Retained: &pools.Retention{Since: time.Unix(1, 0)}}.String()
		_, err := h.node.CommentVolume(h.bounded(), fast, "v", retained)
		return err
	}},
	{"read", func(h *harness) error {
		r, err := h.node.Read(h.bounded(), "v")
		if err == nil {
			r.Close()
		}
		return err
	}},
	{"delete the snapshot", func(h *harness) error { return h.node.DeleteSnapshot(h.bounded(), fast, "s") }},
	{"delete", func(h *harness) error { return h.remove("v") }},
	{"delete the clone", func(h *harness) error { return h.remove("w") }},
}

// TestKilledAtEachStep: the daemon is killed before and after each change that it makes. The next one finishes what
// was begun without being asked, repeats what it is asked for, and leaves nothing.
func TestKilledAtEachStep(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprintf("again=%t", again), func(t *testing.T) {
			t.Parallel()
			at := 1
			for killed := true; killed && !t.Failed(); at++ {
				inWorld(t, func(h *harness) { killed = killedAt(h, at, again) })
			}
			if at < 50 {
				t.Errorf("there were only %d steps", at)
			}
		})
	}
}

// killedAt kills the daemon at a step, and returns false if there is no such step. again: the call is repeated and all
// goes on; else all is taken back.
func killedAt(h *harness, at int, again bool) bool {
	life := h.life
	h.locked(func() { h.steps, h.killAt = 0, at })
	for i, call := range whole {
		err := call.ask(h)
		synctest.Wait()
		dead := false
		h.locked(func() { dead = h.life != life })
		if !dead {
			h.must(err)
			continue
		}
		h.locked(func() { h.killAt = 0 })
		where := fmt.Sprintf("killed at step %d, in %s (%v)", at, call.name, err)
		h.restart(true)
		h.pass(time.Minute)
		for name, r := range h.disks["/fast"].records {
			if r.State != "ready" {
				h.Errorf("%s: %s is %s, and no one goes on", where, name, r.State)
			}
		}
		if again {
			for _, rest := range whole[i:] {
				if err := rest.ask(h); err != nil {
					h.Fatalf("%s: %s again: %v", where, rest.name, err)
				}
			}
		} else {
			for _, undo := range whole {
				switch undo.name {
				case "unpublish", "unstage", "delete the snapshot", "delete", "delete the clone":
					if err := undo.ask(h); err != nil {
						h.Fatalf("%s: %s: %v", where, undo.name, err)
					}
				}
			}
		}
		h.pass(time.Minute)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("%s: left on the node: %q", where, left)
		}
		if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Provisioned != 0 {
			h.Errorf("%s: %+v, %v", where, all, err)
		}
		return true
	}
	return false
}
