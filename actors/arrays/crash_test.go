package arrays

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// afterCrash is what the kubelet asks for after the daemon was killed in a call.
var afterCrash = map[string]func(h *harness, id string, from int){
	// It repeats the call, and goes on.
	"again": func(h *harness, id string, from int) {
		for _, call := range whole[from:] {
			h.must(call.ask(h, id))
		}
	},
	// The pod was deleted meanwhile.
	"back": func(h *harness, id string, _ int) {
		h.must(h.unpublish(id, "a"))
		h.must(h.unstage(id))
	},
	// Another pod has come meanwhile.
	"anew": func(h *harness, id string, _ int) {
		h.must(h.stage(id))
		h.must(h.publish(id, "b"))
		h.must(h.unpublish(id, "a"))
		h.must(h.unpublish(id, "b"))
		h.must(h.unstage(id))
	},
}

// whole is the life of a volume on a node.
var whole = []struct {
	name string
	ask  func(h *harness, id string) error
}{
	{"stage", (*harness).stage},
	{"publish", func(h *harness, id string) error { return h.publish(id, "a") }},
	{"stage again", (*harness).stage},
	{"unpublish", func(h *harness, id string) error { return h.unpublish(id, "a") }},
	{"unstage", (*harness).unstage},
}

// TestKilledAtEachStep: the daemon is killed before and after each change that it makes. Another one is asked
// what the kubelet would ask, and nothing is damaged or left.
func TestKilledAtEachStep(t *testing.T) {
	for _, id := range kinds {
		for name, after := range afterCrash {
			t.Run(id+"/"+name, func(t *testing.T) {
				t.Parallel()
				for at, killed := 1, true; killed && !t.Failed(); at++ {
					inWorld(t, func(h *harness) { killed = killedAt(h, id, at, after) })
				}
			})
		}
	}
}

// TestKilledInUnstageWithoutRecord: what an older daemon has staged is unstaged, though the daemon is killed at any
// step of it.
func TestKilledInUnstageWithoutRecord(t *testing.T) {
	for _, id := range kinds {
		t.Run(id, func(t *testing.T) {
			for at, killed := 1, true; killed && !t.Failed(); at++ {
				inWorld(t, func(h *harness) {
					h.must(h.stage(id))
					h.pass(longReport)
					h.locked(func() { delete(h.records, id) })
					h.restart(false)
					life := h.life
					h.locked(func() { h.steps, h.killAt = 0, at })
					err := h.unstage(id)
					synctest.Wait()
					h.locked(func() { killed = h.life != life; h.killAt = 0 })
					if !killed {
						h.must(err)
						return
					}
					h.restart(true)
					h.must(h.unstage(id))
					h.pass(longReport)
					if left := h.leftovers(); len(left) > 0 {
						h.Errorf("killed at step %d: left on the node: %q", at, left)
					}
				})
			}
		})
	}
}

// killedAt kills the daemon at a step. It returns false if there is no such step.
func killedAt(h *harness, id string, at int, after func(*harness, string, int)) bool {
	h.locked(func() { h.steps, h.killAt = 0, at })
	life := h.life
	for i, call := range whole {
		err := call.ask(h, id)
		synctest.Wait()
		dead := false
		h.locked(func() { dead = h.life != life })
		if !dead {
			h.must(err)
			continue
		}
		h.locked(func() { h.killAt = 0 })
		where := fmt.Sprintf("killed at step %d, in %s (%v)", at, call.name, err)
		published := call.name == "stage again" || call.name == "publish" && err == nil
		if published && !h.isMounted(podPath(id, "a")) {
			h.Errorf("%s: it is not published any more", where)
		}
		h.restart(true)
		if published && !h.isMounted(podPath(id, "a")) {
			h.Errorf("%s: the next daemon has taken it from its pod", where)
		}
		after(h, id, i)
		h.pass(longReport)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("%s: left on the node: %q", where, left)
		}
		return true
	}
	return false
}
