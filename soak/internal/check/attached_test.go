package check

import (
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// attachment is a pod that attaches a volume, played by a test.
type attachment struct {
	*world
	source, by *history.Volume
	end        func()
}

// attach lets a pod attach a volume.
func (w *world) attach(source *history.Volume) attachment {
	w.t.Helper()
	by := w.volume(100)
	by.Data, by.Attaches = "", source
	end := w.checker.BeginAttachment(source, by)
	if end == nil {
		w.t.Fatal("it cannot be attached")
	}
	w.call(by, history.Publish, 10*time.Millisecond, codes.OK, func() { w.mounts[by.Target] = true })
	return attachment{w, source, by, end}
}

// detach ends the pod.
func (a attachment) detach() {
	a.call(a.by, history.Unpublish, 10*time.Millisecond, codes.OK, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.mounts, a.by.Target)
	})
	a.end()
}

// release lets the volume go while it is attached.
func (a attachment) release() attachment {
	a.checker.BeginRelease(a.source)(0, nil)
	return a
}

// TestAttached has what may come of a volume that another pod attaches. The grace of a
// release is a second.
func TestAttached(t *testing.T) {
	tell(t, graceOfASecond, []played{
		{"released meanwhile, and goes after the grace", func(w *world) {
			a := w.attach(w.retain(1)).release()
			time.Sleep(3 * time.Second)
			a.detach()
			time.Sleep(2 * time.Second)
			w.remove(a.source)
			time.Sleep(time.Second)
		}, ""},
		{"released meanwhile, and goes at once", func(w *world) {
			a := w.attach(w.retain(1)).release()
			time.Sleep(3 * time.Second)
			w.remove(a.source)
			time.Sleep(time.Second)
		}, history.Attached},
		{"released meanwhile, and goes before the grace", func(w *world) {
			a := w.attach(w.retain(1)).release()
			time.Sleep(3 * time.Second)
			a.detach()
			w.remove(a.source)
			time.Sleep(time.Second)
		}, history.Attached},
		{"released meanwhile, and kept", func(w *world) {
			a := w.attach(w.retain(1)).release()
			time.Sleep(3 * time.Second)
			a.detach()
			time.Sleep(2 * tolerance)
		}, history.Holds},
		{"beyond its lifespan, and goes in time", func(w *world) {
			a := w.attach(w.retain(1))
			time.Sleep(lifespan + time.Minute)
			a.detach()
			time.Sleep(31 * time.Second)
			w.remove(a.source)
			time.Sleep(time.Second)
		}, ""},
		{"beyond its lifespan, and expires", func(w *world) {
			v := w.retain(1)
			w.attach(v)
			time.Sleep(lifespan + time.Second)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Attached},
		{"beyond its lifespan, and kept for ever", func(w *world) {
			a := w.attach(w.retain(1))
			time.Sleep(lifespan + time.Second)
			a.detach()
			time.Sleep(2 * time.Minute)
		}, history.Durable},
		{"deleted early", func(w *world) {
			v := w.retain(1)
			w.attach(v)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Durable},
		{"evicted", func(w *world) {
			v := w.retain(1)
			w.attach(v).release()
			w.free(0)
			time.Sleep(lifespan / 2)
			w.remove(v)
			time.Sleep(time.Second)
		}, history.Attached},
		{"a younger one is evicted", func(w *world) {
			w.attach(w.retain(1))
			time.Sleep(2 * time.Second)
			younger := w.retain(2)
			w.free(75)
			time.Sleep(lifespan * 3 / 4)
			w.remove(younger)
			time.Sleep(time.Second)
		}, ""},
		{"refused for being read", func(w *world) {
			a := w.attach(w.retain(1))
			w.call(a.by, history.Publish, time.Millisecond, codes.Aborted, nil)
		}, ""},
		{"refused while the driver may not have reached its gateway yet", func(w *world) {
			v := w.retain(1)
			time.Sleep(2 * connects)
			w.timeline.Begin(workload.DaemonKill, "")()
			time.Sleep(time.Second)
			a := w.attach(v)
			w.call(a.by, history.Publish, time.Millisecond, codes.Unavailable, nil)
		}, ""},
		{"refused although the driver has reached its gateway", func(w *world) {
			a := w.attach(w.retain(1))
			time.Sleep(2 * connects)
			w.call(a.by, history.Publish, time.Millisecond, codes.Unavailable, nil)
		}, history.Lives},
		{"refused for being gone, which it is not", func(w *world) {
			v, by := w.retain(1), w.volume(100)
			by.Data, by.Attaches = "", v
			w.checker.BeginAttachment(v, by)
			w.call(by, history.Publish, time.Millisecond, codes.NotFound, nil)
		}, history.AnyOrder},
		{"refused for being gone", func(w *world) {
			v, by := w.retain(1), w.volume(100)
			by.Data, by.Attaches = "", v
			w.checker.BeginAttachment(v, by)
			time.Sleep(lifespan + time.Second)
			w.remove(v)
			w.call(by, history.Publish, time.Millisecond, codes.NotFound, nil)
			time.Sleep(time.Second)
		}, ""},
		{"not after its end", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan + time.Second)
			w.remove(v)
			time.Sleep(time.Second)
			if w.checker.BeginAttachment(v, w.volume(100)) != nil {
				w.t.Error("it is asked for")
			}
		}, ""},
		{"a tombstone of what has no data", func(w *world) {
			a := w.attach(w.retain(1))
			a.detach()
			w.checker.CheckGone([]Buried{{ID: a.by.ID}}, true)
		}, history.Attached},
	})
}

// TestOwnLifespan: a volume may ask for another lifespan than the driver's.
func TestOwnLifespan(t *testing.T) {
	goes := func(after time.Duration) func(*world) {
		return func(w *world) {
			v := w.volume(1)
			v.Lifespan = 2 * lifespan
			w.publish(v)
			w.unpublish(v)
			time.Sleep(after)
			if _, err := os.Stat(v.Data); err != nil {
				w.t.Fatal(err)
			}
			w.remove(v)
			time.Sleep(time.Second)
		}
	}
	tell(t, nil, []played{
		{"in time", goes(2*lifespan + time.Second), ""},
		{"after the driver's lifespan", goes(lifespan + time.Second), history.Durable},
		{"too late", goes(2*lifespan + 2*tolerance), history.Durable},
	})
}

// TestAttachedIsWatched: the pod may let the volume go at any time, however late that is.
func TestAttachedIsWatched(t *testing.T) {
	inWorld(t, func(c *Config) { c.ReleaseGrace = time.Second }, func(w *world) {
		a := w.attach(w.retain(1))
		r := w.checker.follows(a.source)
		r.seen = true
		if next := time.Until(r.nextLook(time.Now())); next > dueInterval {
			w.t.Errorf("the next look comes after %s", next)
		}
		w.checker.settle(r, func(*Counts) {})
	})
}
