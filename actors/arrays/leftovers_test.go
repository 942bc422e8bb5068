package arrays

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestKilledInStageForEver: the daemon is killed at any step of a stage, the pod is deleted, and the kubelet, which
// knows of no mount, never unstages. What is left stays while the volume is attached, and goes after it was detached.
func TestKilledInStageForEver(t *testing.T) {
	for _, id := range kinds {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			cleared := 0
			for at, killed := 1, true; killed && !t.Failed(); at++ {
				inWorld(t, func(h *harness) {
					var had bool
					killed, had = neverUnstaged(h, id, at)
					if had {
						cleared++
					}
				})
			}
			if cleared == 0 && id != "nfs" { // of which a new daemon forgets what is not mounted
				t.Error("no step left anything")
			}
		})
	}
}

// neverUnstaged kills the daemon at a step of a stage. It returns false if there is no such step, and whether
// something was left that had to go.
func neverUnstaged(h *harness, id string, at int) (killed, cleared bool) {
	h.locked(func() { h.steps, h.killAt = 0, at })
	life := h.life
	_ = h.stage(id)
	synctest.Wait()
	h.locked(func() { killed = h.life != life; h.killAt = 0 })
	if !killed {
		return false, false
	}
	h.restart(true)
	mounted := 0
	h.locked(func() { mounted = len(h.mounts) })
	before := h.leftovers()
	h.pass(8 * time.Minute)
	if after := h.leftovers(); len(after) < len(before) {
		h.Errorf("killed at step %d: of %q only %q is left while the volume is attached", at, before, after)
	}
	h.locked(func() { h.detached[id+".node"], h.apiDown = true, true })
	h.pass(8 * time.Minute)
	if after := h.leftovers(); len(after) < len(before) {
		h.Errorf("killed at step %d: of %q only %q is left while the API server is away", at, before, after)
	}
	h.locked(func() { h.apiDown = false })
	h.pass(8 * time.Minute)
	if mounted > 0 {
		if after := h.leftovers(); len(after) < len(before) {
			h.Errorf("killed at step %d: of %q only %q is left, though the volume is mounted", at, before, after)
		}
		return true, false
	}
	h.clean()
	return true, len(before) > 0
}

// TestOneRecordCannotBeRead: the other volumes are served all the same, and what is left of them goes.
func TestOneRecordCannotBeRead(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.stage("ext4"))
		h.locked(func() { h.unread = errNotFound })
		h.restart(false)
		h.must(h.publish("ext4", "a"))
		h.must(h.unpublish("ext4", "a"))
		h.locked(func() { h.detached["ext4.node"], h.mounts = true, nil })
		h.pass(8 * time.Minute)
		h.clean()
	})
}

// TestLeftoversAreNotHurried: a volume that is being staged for a while is not asked about, and one that is staged or
// published never is.
func TestLeftoversAreNotHurried(t *testing.T) {
	inWorld(t, func(h *harness) {
		want := func(questions bool, records int) {
			h.Helper()
			h.locked(func() {
				if questions != (h.asked > 0) || len(h.records) != records || len(h.mounts) != 5 {
					h.Errorf("asked %d times, %d records, want %d, %d mounts", h.asked, len(h.records), records, len(h.mounts))
				}
			})
		}
		for _, id := range kinds {
			h.locked(func() { h.detached[id+".node"] = true })
			if id != "block" {
				h.must(h.stage(id))
			}
		}
		h.must(h.publish("ext4", "a"))
		h.pass(time.Hour)
		want(false, 4)
		h.locked(func() {
			h.fail = func(call string) error {
				if call == "bind device" {
					return errNotFound
				}
				return nil
			}
		})
		if err := h.stage("block"); err == nil {
			h.Error("staged without its device")
		}
		h.pass(leftAfter - time.Minute)
		want(false, 5)
		h.pass(leftAfter)
		want(true, 4)
	})
}
