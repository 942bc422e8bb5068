package check

import (
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestOwners: of an owner what the first pod and the last one left stays, of those that failed and of those that did not, and nothing else
// does, as far as the driver can know which these are.
func TestOwners(t *testing.T) {
	type ended struct {
		owner          string
		failed         bool
		unsaid, untold bool
		killed, pinned bool
		again          bool // published, after the driver was told how it ended
	}
	failed, succeeded := ended{owner: "Job loop", failed: true}, ended{owner: "Job loop"}
	n := 0
	// leave retains a volume of a pod that ended so.
	leave := func(w *world, e ended) *history.Volume {
		n++
		v := w.volume(n, func(v *history.Volume) { v.Owner, v.Failed = e.owner, e.failed })
		w.publish(v)
		if !e.unsaid {
			v.BeginOwning()()
		}
		if e.killed {
			w.timeline.Begin(workload.DaemonKill, "")()
		}
		if !e.untold {
			v.EndTold("ended")
		}
		if e.again {
			w.overtaken(v)
		} else {
			w.unpublish(v)
		}
		if e.pinned {
			v.BeginPin(time.Now().Add(lifespan))
			v.EndPin(nil)
		}
		time.Sleep(3 * time.Second)
		return v
	}
	// end lets what is left go in time.
	end := func(w *world, left ...*history.Volume) {
		for _, v := range left {
			time.Sleep(time.Until(v.LastOK(history.Unpublish).Add(lifespan + 2*time.Second)))
			w.remove(v)
		}
		w.finish()
	}
	// stays lets three pods end, of which the second one is such, and nothing goes early.
	stays := func(second ended) func(*world) {
		return func(w *world) {
			end(w, leave(w, failed), leave(w, second), leave(w, failed))
		}
	}
	// goes lets the pods end so, and what one of them left go.
	goes := func(which int, pods ...ended) func(*world) {
		return func(w *world) {
			var left []*history.Volume
			for _, pod := range pods {
				left = append(left, leave(w, pod))
			}
			w.remove(left[which])
			time.Sleep(time.Second)
			end(w, append(left[:which:which], left[which+1:]...)...)
		}
	}
	changed := func(e ended, change func(*ended)) ended {
		change(&e)
		return e
	}
	unsaid := changed(failed, func(e *ended) { e.unsaid = true })
	untold := changed(failed, func(e *ended) { e.untold = true })
	killed := changed(failed, func(e *ended) { e.killed = true })
	pinned := changed(failed, func(e *ended) { e.pinned = true })
	again := changed(failed, func(e *ended) { e.again = true })
	other := changed(failed, func(e *ended) { e.owner = "StatefulSet loop" })
	none := changed(failed, func(e *ended) { e.owner, e.unsaid = "", true })
	tell(t, func(c *Config) {
		c.Outcomes, c.ReleaseGrace, c.MaxPerOwner = true, time.Second, workload.PerOwner{First: 1, Last: 1}
	}, []played{
		{"one between goes", goes(1, failed, failed, failed), ""},
		{"a success between goes", goes(1, succeeded, succeeded, succeeded), ""},
		{"the first goes", goes(0, failed, failed, failed), history.PerOwner},
		{"the last goes", goes(1, failed, failed), history.PerOwner},
		{"a success goes for failures", goes(1, failed, succeeded, failed), history.PerOwner},
		{"a failure goes for successes", goes(1, succeeded, failed, succeeded), history.PerOwner},
		{"another owner's goes", goes(1, failed, other, failed), history.PerOwner},
		{"none's goes", goes(1, failed, none, failed), history.Durable},
		{"one goes whose owner the driver was not told", goes(1, failed, unsaid, failed), history.Durable},
		{"one between stays", stays(failed), history.PerOwner},
		{"one between stays, of whose owner the driver was not told", stays(unsaid), ""},
		{"one between stays, of whose end the driver was not told", stays(untold), ""},
		{"one between stays, and the driver may have forgotten", stays(killed), ""},
		{"one between stays that was published again after its end was told", stays(again), ""},
		{"one between goes that was published again after its end was told", goes(1, failed, again, failed), ""},
		{"one between stays that is pinned", stays(pinned), ""},
		{"one between stays, and the disk is short of room", func(w *world) {
			w.free(90)
			stays(failed)(w)
		}, history.PerOwner},
	})
}

// TestOwnerAtTheEndOfALifespan: a volume that went for its owner just before its lifespan was over, and is looked for after that,
// may say so.
func TestOwnerAtTheEndOfALifespan(t *testing.T) {
	for _, before := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(before.String(), func(t *testing.T) {
			w := inWorld(t, func(c *Config) {
				c.Outcomes, c.ReleaseGrace, c.MaxPerOwner, c.Tombstones = true, time.Second, workload.PerOwner{First: 0, Last: 1}, true
			}, func(w *world) {
				leave := func(n int) *history.Volume {
					v := w.volume(n, func(v *history.Volume) { v.Owner, v.Failed = "Job loop", true })
					w.publish(v)
					v.BeginOwning()()
					v.EndTold("ended")
					w.unpublish(v)
					return v
				}
				first := leave(1012)
				time.Sleep(time.Until(first.FirstSent(history.Unpublish).Add(lifespan - before)))
				leave(1013)
				w.remove(first)
				time.Sleep(2 * time.Second)
				w.checker.CheckGone([]Buried{
					{ID: first.ID, Namespace: first.Namespace, Pod: first.PodName, PodUID: first.Pod, Reason: "owner"},
				}, true)
			})
			for _, v := range w.findings.All() {
				t.Errorf("%s: %s", v.Promise, v.What)
			}
		})
	}
}
