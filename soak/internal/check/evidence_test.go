package check

import (
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// TestFailuresGoLast: what a pod that failed left goes after what pods that succeeded left, as far as the driver
// can know which these are.
func TestFailuresGoLast(t *testing.T) {
	// leave retains a volume whose pod ended so.
	leave := func(w *world, n int, failed, told bool) *history.Volume {
		v := w.volume(n)
		v.Failed = failed
		w.publish(v)
		if told {
			v.EndTold("ended")
		}
		w.unpublish(v)
		time.Sleep(2 * time.Second)
		return v
	}
	// press lets the disk become so full that all may go, and waits until all have been seen once more.
	press := func(w *world) {
		w.free(5)
		time.Sleep(2 * time.Second)
	}
	// evict lets a volume go under pressure, and waits until that can be judged.
	evict := func(w *world, v *history.Volume) {
		press(w)
		w.remove(v)
		time.Sleep(underWay + time.Second)
	}
	// end lets go what is left.
	end := func(w *world, left ...*history.Volume) {
		for _, v := range left {
			w.remove(v)
		}
		w.finish()
	}
	tell(t, func(c *Config) { c.Outcomes, c.ReleaseGrace = true, time.Hour }, []played{
		{"a failure goes first", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			evict(w, failed)
			end(w, succeeded)
		}, history.KeepsFailed},
		{"a failure that is newer goes first", func(w *world) {
			succeeded, failed := leave(w, 1, false, true), leave(w, 2, true, true)
			evict(w, failed)
			end(w, succeeded)
		}, history.KeepsFailed},
		{"a success goes first", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			press(w)
			w.remove(succeeded)
			w.remove(failed)
			end(w)
		}, ""},
		{"a success is on its way out", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			press(w)
			w.remove(failed)
			time.Sleep(time.Second)
			w.remove(succeeded)
			end(w)
		}, ""},
		{"a success of which the driver was not told", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, false)
			evict(w, failed)
			end(w, succeeded)
		}, ""},
		{"a success of which a driver was told that was killed then", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			w.timeline.Begin(workload.DaemonKill, "")()
			evict(w, failed)
			end(w, succeeded)
		}, ""},
		{"a success that was published again after the driver was told", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), w.volume(2)
			w.publish(succeeded)
			succeeded.EndTold("ended")
			w.overtaken(succeeded)
			time.Sleep(2 * time.Second)
			evict(w, failed)
			end(w, succeeded)
		}, ""},
		{"a success that is pinned", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			until := time.Now().Add(time.Minute)
			succeeded.BeginPin(until)
			succeeded.EndPin(nil)
			press(w)
			w.remove(failed)
			time.Sleep(time.Until(until) + time.Second)
			end(w, succeeded)
		}, ""},
		{"a success that came later", func(w *world) {
			failed := leave(w, 1, true, true)
			w.free(5)
			time.Sleep(time.Second)
			w.remove(failed)
			end(w, leave(w, 2, false, true))
		}, ""},
		{"a failure that was released", func(w *world) {
			failed, succeeded := leave(w, 1, true, true), leave(w, 2, false, true)
			failed.BeginRelease()
			failed.EndRelease(nil)
			evict(w, failed)
			end(w, succeeded)
		}, ""},
	})
}
