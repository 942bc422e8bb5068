package check

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// pin has the volume pinned for a while, as the driver says.
func (w *world) pin(v *history.Volume, length time.Duration) {
	w.t.Helper()
	_, end := w.checker.BeginPin(v, length)
	if end == nil {
		w.t.Fatal("it cannot be pinned")
	}
	end(0, nil)
}

// TestHolds has what may come of pins and releases. The grace of a release is a
// second.
func TestHolds(t *testing.T) {
	no := errors.New("no")
	tell(t, graceOfASecond, []played{
		{"pinned, and goes at the end", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			time.Sleep(2*lifespan + time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"pinned, and expires", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			time.Sleep(lifespan + time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Holds},
		{"pinned, and deleted early", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			time.Sleep(lifespan / 2)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Durable},
		{"pinned, and kept for ever", func(w *world) {
			w.pin(w.retain(1), 2*lifespan)
			time.Sleep(2*lifespan + 2*tolerance)
		}, history.Holds},
		{"pinned, and evicted", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			w.free(75)
			time.Sleep(lifespan * 3 / 4)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Durable},
		{"pinned, and the disk is full", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			w.free(0)
			time.Sleep(lifespan * 3 / 4)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"pinned, and a younger one is evicted", func(w *world) {
			v := w.retain(1)
			w.pin(v, 2*lifespan)
			time.Sleep(2 * time.Second)
			younger := w.retain(2)
			w.free(75)
			time.Sleep(lifespan * 3 / 4)
			w.remove(younger)
			time.Sleep(time.Second)
		}, ""},
		{"a pin whose answer is lost may hold", func(w *world) {
			v := w.retain(1)
			_, end := w.checker.BeginPin(v, 2*lifespan)
			w.timeline.Begin(workload.DaemonKill, "")()
			end(Unserved, no)
			time.Sleep(2 * lifespan)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"a pin that is refused", func(w *world) {
			_, end := w.checker.BeginPin(w.retain(1), 2*lifespan)
			end(Refused, no)
		}, history.Holds},
		{"a pin by another clock", func(w *world) {
			w.timeline.Begin(workload.ClockStep, "")()
			if _, end := w.checker.BeginPin(w.retain(1), 2*lifespan); end != nil {
				w.t.Error("it is asked for")
			}
		}, ""},
		{"released, and goes", func(w *world) {
			v := w.retain(1)
			w.checker.BeginRelease(v)(0, nil)
			time.Sleep(2 * time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"released, and goes before the grace", func(w *world) {
			v := w.retain(1)
			w.checker.BeginRelease(v)(0, nil)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Holds},
		{"released, and kept", func(w *world) {
			w.checker.BeginRelease(w.retain(1))(0, nil)
			time.Sleep(2 * tolerance)
		}, history.Holds},
		{"released, and goes before an older one", func(w *world) {
			w.retain(1)
			time.Sleep(2 * time.Second)
			v := w.retain(2)
			w.free(75)
			w.checker.BeginRelease(v)(0, nil)
			time.Sleep(500 * time.Millisecond)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"a release whose answer is lost may not have come, and it expires", func(w *world) {
			v := w.retain(1)
			end := w.checker.BeginRelease(v)
			w.timeline.Begin(workload.DaemonKill, "")()
			end(Unserved, no)
			time.Sleep(lifespan + time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"a release whose answer is lost, and kept for ever", func(w *world) {
			end := w.checker.BeginRelease(w.retain(1))
			w.timeline.Begin(workload.DaemonKill, "")()
			end(Unserved, no)
			time.Sleep(lifespan + 2*tolerance)
		}, history.Durable},
		{"a release that is refused", func(w *world) { w.checker.BeginRelease(w.retain(1))(Refused, no) }, history.Holds},
		{"of a failed pod, and goes as if it had succeeded", func(w *world) {
			v := w.volume(1)
			v.OnFailure, v.Failed = true, true
			w.publish(v)
			w.unpublish(v)
			time.Sleep(2 * time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.KeepsFailed},
		{"of a pod that succeeded, and goes after the grace", func(w *world) {
			v := w.volume(1)
			v.OnFailure = true
			w.publish(v)
			w.unpublish(v)
			time.Sleep(2 * time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
		{"of a pod that succeeded, and goes before the grace", func(w *world) {
			v := w.volume(1)
			v.OnFailure = true
			w.publish(v)
			w.unpublish(v)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Durable},
		{"of a pod whose end the driver does not know", func(w *world) {
			v := w.volume(1)
			v.OnFailure = true
			w.publish(v)
			w.unpublish(v)
			time.Sleep(lifespan)
			w.remove(v)
			time.Sleep(time.Second)
		}, ""},
	})
}

// TestTombstones has what a driver may remember of volumes that are gone.
func TestTombstones(t *testing.T) {
	of := func(v *history.Volume, reason string) Buried {
		return Buried{ID: v.ID, Namespace: v.Namespace, Pod: v.PodName, PodUID: v.Pod, Reason: reason}
	}
	// Each retains one volume, has it go, and returns what is remembered then.
	expire := func(w *world) *history.Volume {
		v := w.retain(1)
		time.Sleep(lifespan + 100*time.Millisecond)
		w.remove(v)
		time.Sleep(time.Second)
		return v
	}
	purge := func(w *world) *history.Volume {
		v := w.retain(1)
		end := w.checker.BeginRemoval(v)
		w.remove(v)
		end(0, nil)
		time.Sleep(time.Second)
		return v
	}
	// late is a removal that meets another reason.
	late := func(meets func(w *world)) func(*world) *history.Volume {
		return func(w *world) *history.Volume {
			v := w.retain(1)
			meets(w)
			end := w.checker.BeginRemoval(v)
			time.Sleep(100 * time.Millisecond)
			w.remove(v)
			end(0, nil)
			time.Sleep(time.Second)
			return v
		}
	}
	atDeadline := late(func(*world) { time.Sleep(lifespan - 50*time.Millisecond) })
	underPressure := late(func(w *world) {
		w.free(75)
		time.Sleep(2 * time.Second)
	})
	evict := func(w *world) *history.Volume {
		v := w.retain(1)
		w.free(75)
		time.Sleep(lifespan * 3 / 4)
		w.remove(v)
		time.Sleep(time.Second)
		return v
	}
	release := func(w *world) *history.Volume {
		v := w.retain(1)
		w.checker.BeginRelease(v)(0, nil)
		time.Sleep(2 * time.Second)
		w.remove(v)
		time.Sleep(time.Second)
		return v
	}
	releaseAtDeadline := func(w *world) *history.Volume {
		v := w.retain(1)
		time.Sleep(lifespan - 50*time.Millisecond)
		w.checker.BeginRelease(v)(0, nil)
		time.Sleep(100 * time.Millisecond)
		w.remove(v)
		time.Sleep(time.Second)
		return v
	}
	full := func(w *world) *history.Volume {
		over := w.timeline.Begin(workload.DiskFull, "")
		defer over()
		return evict(w)
	}
	one := func(reason string) func(*history.Volume) []Buried {
		return func(v *history.Volume) []Buried { return []Buried{of(v, reason)} }
	}
	none := func(*history.Volume) []Buried { return nil }
	for _, test := range []struct {
		name   string
		goes   func(*world) *history.Volume
		buried func(*history.Volume) []Buried
		broken bool
	}{
		{"expired", expire, one("expired"), false},
		{"expired, and nothing is said", expire, none, true},
		{"expired, and another reason is said", expire, one("bytes"), true},
		{"expired, and interrupted without a kill", expire, one("interrupted"), true},
		{"expired, said twice", expire, func(v *history.Volume) []Buried { return []Buried{of(v, "expired"), of(v, "expired")} }, true},
		{"expired, as another pod's", expire, func(v *history.Volume) []Buried {
			b := of(v, "expired")
			b.Pod = "another"
			return []Buried{b}
		}, true},
		{"purged", purge, one("purged"), false},
		{"purged, and said to have expired", purge, one("expired"), true},
		{"purged at its deadline", atDeadline, one("purged"), false},
		{"purged at its deadline, and expired", atDeadline, one("expired"), false},
		{"purged at its deadline, and evicted", atDeadline, one("bytes"), true},
		{"purged under pressure, and evicted", underPressure, one("bytes"), false},
		{"evicted", evict, one("bytes"), false},
		{"evicted, and said to have expired", evict, one("expired"), true},
		{"released", release, one("released"), false},
		{"released, and said to have expired", release, one("expired"), true},
		{"released at its deadline, and expired", releaseAtDeadline, one("expired"), false},
		{"released at its deadline, and purged", releaseAtDeadline, one("purged"), true},
		{"no room for a tombstone", full, none, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := 0
			w := inWorld(t, func(c *Config) { c.ReleaseGrace, c.Tombstones = time.Second, true }, func(w *world) {
				list := test.buried(test.goes(w))
				if missing := w.checker.CheckGone(list, false); (missing > 0) != (len(list) == 0 && test.broken) {
					w.t.Errorf("%d are missing", missing)
				}
				if w.findings.Sum() != 0 {
					w.t.Error("it is judged before its time")
				}
				w.checker.CheckGone(list, true)
			})
			if test.broken {
				n = 1
			}
			w.want(history.Tombstones, n)
		})
	}
}
