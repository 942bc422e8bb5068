package check

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// listed is how an honest driver lists a retained volume.
func listed(v *history.Volume) Listed {
	at := v.LastOK(history.Unpublish)
	return Listed{
		ID: v.ID, Namespace: v.Namespace, Pod: v.PodName, PodUID: v.Pod, Volume: v.Name, Retained: true,
		RetainedAt: at, ExpiresAt: at.Add(lifespan),
	}
}

// ahead is what the driver shows when its clock is ahead.
func ahead(l Listed, by time.Duration) Listed {
	l.RetainedAt, l.ExpiresAt = l.RetainedAt.Add(by), l.ExpiresAt.Add(by)
	return l
}

// TestLists has what is wrong with a list, and what almost is.
func TestLists(t *testing.T) {
	tell(t, nil, []played{
		{"all of them, the newest first", func(w *world) {
			a := w.retain(1)
			time.Sleep(time.Second)
			b := w.retain(2)
			w.checker.BeginList("").End([]Listed{listed(b), listed(a)})
			w.checker.BeginList("ci").End([]Listed{listed(b), listed(a)})
			w.checker.BeginList("other").End(nil)
		}, ""},
		{"retained during the list", func(w *world) {
			l := w.checker.BeginList("")
			a := w.retain(1)
			l.End(nil)
			l.End([]Listed{listed(a)})
		}, ""},
		{"published during the list", func(w *world) {
			v := w.volume(1)
			l := w.checker.BeginList("")
			w.publish(v)
			l.End([]Listed{{ID: v.ID, Retained: true}})
		}, ""},
		{"leaves one out", func(w *world) {
			w.retain(1)
			w.checker.BeginList("ci").End(nil)
		}, history.ListsTrue},
		{"leaves out one that goes at its deadline", func(w *world) {
			w.retain(1)
			time.Sleep(lifespan)
			w.checker.BeginList("").End(nil)
		}, ""},
		{"leaves out one that a person removes", func(w *world) {
			w.checker.BeginRemoval(w.retain(1))
			w.checker.BeginList("").End(nil)
		}, ""},
		{"leaves out one that is evicted", func(w *world) {
			w.free(75)
			v := w.retain(1)
			time.Sleep(lifespan * 3 / 4)
			w.checker.BeginList("").End(nil)
			w.remove(v)
		}, ""},
		{"has one twice", func(w *world) {
			v := w.retain(1)
			w.checker.BeginList("").End([]Listed{listed(v), listed(v)})
		}, history.ListsTrue},
		{"has one that is published", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.BeginList("").End([]Listed{{ID: v.ID, Retained: true}})
		}, history.ListsTrue},
		{"calls one published", func(w *world) {
			item := listed(w.retain(1))
			item.Retained = false
			w.checker.BeginList("").End([]Listed{item})
		}, history.ListsTrue},
		{"has one of another namespace", func(w *world) {
			w.checker.BeginList("other").End([]Listed{listed(w.retain(1))})
		}, history.ListsTrue},
		{"has one of nobody", func(w *world) {
			w.checker.BeginList("").End([]Listed{{ID: "csi-nobody", Retained: true}})
		}, history.ListsTrue},
		{"says that it is of another pod", func(w *world) {
			item := listed(w.retain(1))
			item.Pod = "another"
			w.checker.BeginList("").End([]Listed{item})
		}, history.ListsTrue},
		{"says that it expires later", func(w *world) {
			item := listed(w.retain(1))
			item.ExpiresAt = item.ExpiresAt.Add(2 * time.Second)
			w.checker.BeginList("").End([]Listed{item})
		}, history.ListsTrue},
		{"has one as it was before it was published again, during the list", func(w *world) {
			before := w.retain(1)
			l := w.checker.BeginList("")
			time.Sleep(2 * usualLateness)
			w.again(1, before)
			l.End([]Listed{listed(before)})
		}, ""},
		{"has one as it was before it was published again", func(w *world) {
			before := w.retain(1)
			time.Sleep(2 * usualLateness)
			w.again(1, before)
			w.checker.BeginList("").End([]Listed{listed(before)})
		}, history.ListsTrue},
		{"the clock of the driver is another", func(w *world) {
			before := w.retain(1)
			w.timeline.BeginStep(time.Hour)()
			time.Sleep(time.Millisecond)
			w.checker.BeginList("").End([]Listed{ahead(listed(w.retain(2)), time.Hour), ahead(listed(before), time.Hour)})
		}, ""},
		{"the clock of the driver steps back and forth", func(w *world) {
			before := w.retain(1)
			w.timeline.BeginStep(time.Hour)()
			w.timeline.BeginStep(-3 * time.Hour)()
			time.Sleep(time.Millisecond)
			w.checker.BeginList("").End([]Listed{ahead(listed(before), -2*time.Hour)})
		}, ""},
		{"the clock of the driver steps during the list", func(w *world) {
			l := w.checker.BeginList("")
			before := w.retain(1)
			w.timeline.BeginStep(-time.Hour)()
			l.End([]Listed{ahead(listed(w.retain(2)), -time.Hour), listed(before)})
		}, ""},
		{"shows the clock from before the step", func(w *world) {
			before := w.retain(1)
			w.timeline.BeginStep(time.Hour)()
			time.Sleep(time.Millisecond)
			w.checker.BeginList("").End([]Listed{listed(before)})
		}, history.Monotonic},
		{"shows an end by the clock from before the step", func(w *world) {
			item := listed(w.retain(1))
			w.timeline.BeginStep(-time.Hour)()
			time.Sleep(time.Millisecond)
			item.RetainedAt = item.RetainedAt.Add(-time.Hour)
			w.checker.BeginList("").End([]Listed{item})
		}, history.Monotonic},
		{"shows another clock, though none has stepped since", func(w *world) {
			w.timeline.BeginStep(time.Hour)()
			time.Sleep(time.Millisecond)
			w.checker.BeginList("").End([]Listed{listed(w.retain(1))})
		}, history.ListsTrue},
		{"the oldest first", func(w *world) {
			a := w.retain(1)
			time.Sleep(time.Second)
			w.checker.BeginList("").End([]Listed{listed(a), listed(w.retain(2))})
		}, history.ListsTrue},
		{"has one that is gone", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			w.remove(v)
			time.Sleep(staleAllowance + time.Second)
			w.checker.BeginList("").End([]Listed{listed(v)})
		}, history.ListsTrue},
		{"has one that is just gone", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			w.remove(v)
			time.Sleep(staleAllowance / 2)
			w.checker.BeginList("").End([]Listed{listed(v)})
		}, ""},
		{"has one that a fault took away", func(w *world) {
			v := w.retain(1)
			v.Afflict(workload.VolumeRemoved, "removed")
			w.remove(v)
			time.Sleep(2 * staleAllowance)
			w.checker.BeginList("").End([]Listed{listed(v)})
		}, ""},
	})
}

// TestFailedReads has what excuses that a request fails.
func TestFailedReads(t *testing.T) {
	failed := func(w *world, v *history.Volume, how Failure) { w.checker.ReadFailed(v, time.Now(), how, "it failed") }
	for _, test := range []struct {
		name string
		do   func(*world)
		want int
	}{
		{"retained, and absent", func(w *world) { failed(w, w.retain(1), Absent) }, 1},
		{"retained, and refused", func(w *world) { failed(w, w.retain(1), Refused) }, 1},
		{"retained, and unserved", func(w *world) { failed(w, w.retain(1), Unserved) }, 1},
		{"retained, and broken off", func(w *world) { failed(w, w.retain(1), Broken) }, 1},
		{"a list is broken off", func(w *world) { failed(w, nil, Broken) }, 1},
		{"a list fails", func(w *world) { failed(w, nil, Unserved) }, 1},
		{"the driver was killed", func(w *world) {
			v := w.retain(1)
			w.timeline.Begin(workload.DaemonKill, "")()
			for _, how := range []Failure{Absent, Refused, Unserved} {
				failed(w, v, how)
			}
			failed(w, nil, Unserved)
		}, 0},
		{"the disk is slow", func(w *world) {
			v := w.retain(1)
			defer w.timeline.Begin(workload.SlowDisk, "")()
			failed(w, v, Unserved)
			failed(w, v, Refused)
		}, 1},
		{"gone before the checker saw it", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			w.remove(v)
			failed(w, v, Absent)
		}, 0},
		{"gone, and broken off", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			w.remove(v)
			failed(w, v, Broken)
		}, 0},
		{"gone, and refused", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			w.remove(v)
			failed(w, v, Refused)
		}, 1},
		{"at its deadline", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			failed(w, v, Absent)
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, nil, test.do).want(history.ReadsTrue, test.want)
		})
	}
}

// TestRemovals has what may come of a removal.
func TestRemovals(t *testing.T) {
	tell(t, nil, []played{
		{"it is gone", func(w *world) {
			v := w.retain(1)
			end := w.checker.BeginRemoval(v)
			w.remove(v)
			end(0, nil)
			time.Sleep(time.Second)
			if n := w.checker.Counts(); n.Removed != 1 || n.Expired != 0 || n.Evicted != 0 {
				w.t.Errorf("%+v, want one to be removed", n)
			}
		}, ""},
		{"it is gone, and its answer never came", func(w *world) {
			v := w.retain(1)
			end := w.checker.BeginRemoval(v)
			w.timeline.Begin(workload.DaemonKill, "")()
			w.remove(v)
			end(Unserved, errors.New("no answer"))
			time.Sleep(time.Second)
		}, ""},
		{"it is there", func(w *world) {
			w.checker.BeginRemoval(w.retain(1))(0, nil)
			w.want(history.Removes, 1) // at once
			time.Sleep(2 * lifespan)   // and not reported again
		}, history.Removes},
		{"half of it is there", func(w *world) {
			v := w.retain(1)
			end := w.checker.BeginRemoval(v)
			w.loseMarker(v)
			end(0, nil)
			w.remove(v)
		}, history.Removes},
		{"it is refused", func(w *world) { w.checker.BeginRemoval(w.retain(1))(Refused, errors.New("no")) }, history.Removes},
		{"it is not found", func(w *world) { w.checker.BeginRemoval(w.retain(1))(Absent, errors.New("no")) }, history.Removes},
		{"it has expired", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan)
			end := w.checker.BeginRemoval(v)
			w.remove(v)
			end(Absent, errors.New("not found"))
			time.Sleep(time.Second)
		}, ""},
		{"another one goes with it", func(w *world) {
			v, other := w.retain(1), w.retain(2)
			end := w.checker.BeginRemoval(v)
			w.remove(v)
			w.remove(other)
			end(0, nil)
			time.Sleep(time.Second)
		}, history.Removes},
		{"another one goes long after", func(w *world) {
			v, other := w.retain(1), w.retain(2)
			end := w.checker.BeginRemoval(v)
			w.remove(v)
			end(0, nil)
			time.Sleep(5 * time.Second)
			w.remove(other)
			time.Sleep(time.Second)
		}, history.Durable},
	})
}

// TestMemoryOfTheGone: what is gone for long is forgotten.
func TestMemoryOfTheGone(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		live := func(n int) {
			v := w.retain(n)
			w.checker.BeginRemoval(v)
			w.remove(v)
			time.Sleep(time.Second)
		}
		live(1)
		time.Sleep(goneMemory)
		live(2)
		w.checker.mu.Lock()
		defer w.checker.mu.Unlock()
		gone := w.checker.gone
		if n := len(w.checker.known); n != 1 || len(gone) != 1 || gone[0].volume.ID != "csi-2" {
			w.t.Errorf("%d volumes are known, want the last one that went alone", n)
		}
	})
}
