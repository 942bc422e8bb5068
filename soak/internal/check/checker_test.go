package check

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// TestLooksThatComeLate: on a machine on which the checker does not get to look, nothing is said about a driver that evicts nothing
// for a while; it is once there were enough looks.
func TestLooksThatComeLate(t *testing.T) {
	for _, each := range []struct {
		name         string
		look, length time.Duration // without a length it goes on until something is found
		want         history.Promise
	}{
		{"in time", 0, 0, history.FullDisk},
		{"too few", 3 * time.Second, 40 * time.Second, ""},
		{"late, and enough", 3 * time.Second, 0, history.FullDisk},
	} {
		var late atomic.Bool
		tell(t, func(c *Config) {
			c.Lifespan = 10 * time.Minute
			look := c.Look
			c.Look = func(v *history.Volume, dir string) (story.Verb, error) {
				if late.Load() {
					time.Sleep(each.look)
				}
				return look(v, dir)
			}
		}, []played{{each.name, func(w *world) {
			v := w.retain(1)
			late.Store(true)
			w.free(0)
			time.Sleep(each.length)
			for each.length == 0 && w.findings.Sum() == 0 {
				time.Sleep(time.Second)
			}
			w.remove(v)
		}, each.want}})
	}
}

// TestChecker has for each promise what breaks it and what almost does.
func TestChecker(t *testing.T) {
	const soonAfter = 50 * time.Millisecond
	stories := []played{
		{"expires", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan + soonAfter)
			w.remove(v)
		}, ""},

		{"published data is lost", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.loseMarker(v)
			time.Sleep(time.Second)
			w.want(history.PublishedData, 1) // seen while it is published
			w.unpublish(v)
			time.Sleep(2 * lifespan) // and not reported again
		}, history.PublishedData},
		{"published data is lost in the last moment", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.loseMarker(v)
			w.unpublish(v)
		}, history.PublishedData},
		{"published data is lost by a fault", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			v.Afflict(workload.VolumeRemoved, "removed")
			w.try(os.RemoveAll(v.Data))
			time.Sleep(time.Second)
			w.unpublish(v)
		}, ""},
		{"published data is moved", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			moved := filepath.Join(w.work, ".moved")
			w.try(os.Rename(v.Data, moved))
			w.try(os.Remove(v.Target))
			w.try(os.Symlink(moved, v.Target))
			time.Sleep(time.Second)
			w.unpublish(v)
		}, history.PublishedData},
		{"published data is hidden by a copy", func(w *world) {
			v, copied := w.volume(1), w.t.TempDir()
			w.publish(v)
			w.try(os.WriteFile(filepath.Join(copied, marker), nil, 0o644))
			w.try(os.Remove(v.Target))
			w.try(os.Symlink(copied, v.Target))
			w.unpublish(v)
		}, history.PublishedData},
		{"mount is lost by a kill", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			over := w.timeline.Begin(workload.DaemonKill, "")
			w.unmount(v)
			over()
			w.checker.DaemonReady()
			w.unpublish(v)
		}, history.Durable},
		{"mount outlives a kill", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.timeline.Begin(workload.DaemonKill, "")()
			w.checker.DaemonReady()
			w.unpublish(v)
			time.Sleep(lifespan)
			w.remove(v)
		}, ""},

		{"deleted early", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan - 200*time.Millisecond)
			w.remove(v)
		}, history.Durable},
		{"deleted early, at once", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			w.call(v, history.Unpublish, 0, codes.OK, func() { w.unmount(v); w.remove(v) })
			w.checker.Retained(v)
		}, history.Durable},
		{"deleted early, when the clock stepped", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan / 2)
			w.timeline.Begin(workload.ClockStep, "+1h")()
			w.remove(v)
		}, history.Monotonic},
		{"deleted early, and the clock stepped before", func(w *world) {
			w.timeline.Begin(workload.ClockStep, "+1h")()
			time.Sleep(time.Second)
			v := w.retain(1)
			time.Sleep(lifespan / 2)
			w.remove(v)
		}, history.Durable},
		{"kept too long", func(w *world) { w.retain(1) }, history.Durable},
		{"kept too long, when the clock stepped", func(w *world) {
			w.retain(1)
			w.timeline.Begin(workload.ClockStep, "-1h")()
		}, history.Monotonic},
		{"kept while the driver is away", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan - time.Second)
			back := w.timeline.Begin(workload.DaemonKill, "")
			time.Sleep(2 * tolerance)
			back()
			time.Sleep(tolerance - soonAfter)
			w.remove(v)
		}, ""},
		{"kept too long after the driver was away", func(w *world) {
			w.retain(1)
			time.Sleep(lifespan - time.Second)
			back := w.timeline.Begin(workload.DaemonKill, "")
			time.Sleep(2 * tolerance)
			back()
		}, history.Durable},
		{"kept for a foreign mount", func(w *world) {
			v := w.retain(1)
			gone := v.Afflict(workload.ForeignMount, "mounted inside")
			time.Sleep(lifespan + 2*tolerance)
			gone()
			time.Sleep(holdSlack)
			w.remove(v)
		}, ""},
		{"kept too long after a foreign mount", func(w *world) {
			v := w.retain(1)
			gone := v.Afflict(workload.ForeignMount, "mounted inside")
			time.Sleep(lifespan + 2*tolerance)
			gone()
		}, history.Durable},
		{"deleted by halves", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan + soonAfter)
			w.loseMarker(v)
		}, history.Durable},
		{"deleted by halves early", func(w *world) {
			v := w.retain(1)
			w.loseMarker(v)
		}, history.Durable},
		{"partial for a moment", func(w *world) {
			v := w.retain(1)
			time.Sleep(lifespan + soonAfter)
			w.loseMarker(v)
			time.Sleep(moment / 2)
			w.remove(v)
		}, ""},
		{"removed by a fault", func(w *world) {
			v := w.retain(1)
			v.Afflict(workload.VolumeRemoved, "removed")
			w.try(os.RemoveAll(v.Data))
		}, ""},
		{"symlink by a fault", func(w *world) {
			v := w.retain(1)
			v.Afflict(workload.VolumeSymlink, "symlink")
			w.try(os.RemoveAll(v.Data))
			w.try(os.Symlink(w.t.TempDir(), v.Data))
		}, ""},

		{"evicted", func(w *world) {
			w.free(75) // half of the headroom
			v := w.retain(1)
			time.Sleep(lifespan/2 + soonAfter)
			w.remove(v)
		}, ""},
		{"evicted too soon", func(w *world) {
			w.free(75)
			v := w.retain(1)
			time.Sleep(lifespan / 4)
			w.remove(v)
		}, history.Durable},
		{"evicted after the pressure was over", func(w *world) {
			w.free(0)
			v := w.retain(1)
			time.Sleep(time.Second)
			w.free(1000)
			time.Sleep(4 * prune)
			w.remove(v)
		}, history.Durable},
		{"evicted while a pod filled the disk for a moment", func(w *world) {
			v := w.retain(1)
			w.timeline.Begin(workload.DiskFull, "")()
			w.remove(v)
		}, ""},
		{"evicted out of order", func(w *world) {
			older := w.retain(1)
			time.Sleep(2 * time.Second)
			newer := w.retain(2)
			w.free(5)
			time.Sleep(2 * time.Second)
			w.remove(newer)
			time.Sleep(time.Second)
			w.remove(older)
		}, history.Durable},
		{"evicted in order", func(w *world) {
			older := w.retain(1)
			time.Sleep(2 * time.Second)
			newer := w.retain(2)
			w.free(5)
			time.Sleep(2 * time.Second)
			w.remove(older)
			w.remove(newer)
		}, ""},
		{"evicted in no clear order", func(w *world) {
			older, newer := w.retain(1), w.retain(2)
			w.free(5)
			time.Sleep(2 * time.Second)
			w.remove(newer)
			time.Sleep(time.Second)
			w.remove(older)
		}, ""},
		{"evicted beside one that cannot be", func(w *world) {
			older := w.retain(1)
			gone := older.Afflict(workload.ForeignMount, "mounted inside")
			time.Sleep(2 * time.Second)
			newer := w.retain(2)
			w.free(5)
			time.Sleep(2 * time.Second)
			w.remove(newer)
			time.Sleep(time.Minute)
			gone()
			w.remove(older)
		}, ""},

		{"full disk, and nothing is evicted", func(w *world) {
			v := w.retain(1)
			w.free(0)
			time.Sleep(3*prune + 5*time.Second + 5*time.Second)
			w.remove(v)
		}, history.FullDisk},
		{"full disk, and one is evicted after the other", func(w *world) {
			a, b, c := w.retain(1), w.retain(2), w.retain(3)
			w.free(0)
			for _, v := range []*history.Volume{a, b, c} {
				time.Sleep(3*prune + 4*time.Second)
				w.remove(v)
			}
		}, ""},
		{"full disk, and the driver is away", func(w *world) {
			v := w.retain(1)
			w.free(0)
			back := w.timeline.Begin(workload.DaemonKill, "")
			time.Sleep(lifespan / 2)
			back()
			w.remove(v)
		}, ""},
		{"some pressure, and nothing is due", func(w *world) {
			v := w.retain(1)
			w.free(90)
			time.Sleep(lifespan - time.Second)
			w.remove(v)
		}, ""},

		{"orphan expires", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			v.Afflict(workload.PodRemoved, "removed")
			w.unmount(v)
			w.checker.Abandoned(v)
			time.Sleep(grace + lifespan + soonAfter)
			w.remove(v)
		}, ""},
		{"volume without a marker expires", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			w.unmount(v)
			call := v.Begin(history.Unpublish, false)
			time.Sleep(2 * time.Second)
			v.End(call, nil)
			w.checker.Abandoned(v)
			time.Sleep(lifespan - time.Second)
			w.remove(v)
		}, ""},
		{"volume without a marker goes early", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			w.unmount(v)
			call := v.Begin(history.Unpublish, false)
			time.Sleep(2 * time.Second)
			v.End(call, nil)
			w.checker.Abandoned(v)
			time.Sleep(lifespan - 3*time.Second)
			w.remove(v)
		}, history.Durable},
		{"orphan is kept", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			v.Afflict(workload.PodRemoved, "removed")
			w.unmount(v)
			w.checker.Abandoned(v)
		}, history.NoLeak},
		{"orphan stays mounted", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Abandoned(v)
			time.Sleep(lifespan + grace)
			w.remove(v)
			time.Sleep(time.Minute)
			w.unmount(v)
		}, history.NoLeak},
		{"orphan is deleted early", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			v.Afflict(workload.PodRemoved, "removed")
			w.unmount(v)
			w.checker.Abandoned(v)
			time.Sleep(grace)
			w.remove(v)
		}, history.Durable},
		{"publish failed for good, and nothing is left", func(w *world) {
			w.checker.Abandoned(w.volume(1))
		}, ""},

		{"failed publish leaves a mount", func(w *world) {
			v := w.volume(1)
			w.call(v, history.Publish, 0, codes.Internal, func() { w.mount(v) })
			w.unmount(v)
			w.remove(v)
		}, history.FailedPublish},
		{"failed publish leaves nothing", func(w *world) {
			w.call(w.volume(1), history.Publish, 0, codes.Internal, nil)
		}, history.AnyOrder},
		{"publish failed because its pod was removed", func(w *world) {
			v := w.volume(1)
			v.Afflict(workload.PodRemoved, "removed")
			w.call(v, history.Publish, 0, codes.Internal, nil)
		}, ""},
		{"unpublish leaves the target", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			w.call(v, history.Unpublish, 0, codes.OK, func() {
				w.unmount(v)
				w.try(os.Mkdir(v.Target, 0o755))
			})
			w.try(os.Remove(v.Target))
			w.remove(v)
		}, history.NoLeak},
		{"unpublish leaves the mount", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			w.call(v, history.Unpublish, 0, codes.OK, nil)
			w.unmount(v)
			w.remove(v)
		}, history.NoLeak},
		{"unpublish is overtaken by a publish", func(w *world) {
			v := w.volume(1)
			w.publish(v)
			w.checker.Ending(v)
			late := v.Begin(history.Publish, false)
			w.call(v, history.Unpublish, 0, codes.OK, nil)
			w.checker.Called(v, v.End(late, nil))
			w.call(v, history.Unpublish, 0, codes.OK, func() { w.unmount(v) })
			w.remove(v)
		}, ""},

		{"call waits for another volume", func(w *world) {
			w.call(w.volume(1), history.Unpublish, defaultPatience+time.Second, codes.OK, nil)
		}, history.Independent},
		{"call waits for its own volume", func(w *world) {
			v := w.volume(1)
			v.Afflict(workload.BusyTarget, "busy")
			w.call(v, history.Unpublish, defaultPatience+time.Second, codes.OK, nil)
		}, ""},
		{"call waits for the disk", func(w *world) {
			w.timeline.Begin(workload.SlowDisk, "")
			w.call(w.volume(1), history.Unpublish, defaultPatience+time.Second, codes.OK, nil)
		}, ""},
		{"full disk, and unpublish is refused", func(w *world) {
			w.free(1)
			time.Sleep(time.Second)
			w.call(w.volume(1), history.Unpublish, 0, codes.ResourceExhausted, nil)
		}, history.FullDisk},
		{"full disk, and publish is refused", func(w *world) {
			w.free(1)
			time.Sleep(time.Second)
			w.call(w.volume(1), history.Publish, 0, codes.ResourceExhausted, nil)
		}, ""},
		{"bad input, and the answer is bad", func(w *world) { w.checker.BadAnswer("it was taken") }, history.BadInput},
		{"bad input, and the answer is good", func(w *world) { w.checker.BadAnswer("") }, ""},

		{"canary changes", func(w *world) {
			w.mu.Lock()
			w.canary = errors.New("a file is gone")
			w.mu.Unlock()
			time.Sleep(10 * time.Second)
		}, history.Contained},
		{"canary changes at the very end", func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.canary = errors.New("a file is gone")
		}, history.Contained},

		{"trash stays", func(w *world) { w.try(os.MkdirAll(filepath.Join(w.work, host.TrashName, "x"), 0o755)) }, history.NoLeak},
		{"trash of a foreign mount goes after it", func(w *world) {
			trash := w.setAside()
			time.AfterFunc(holdSlack, func() { w.try(os.Remove(trash)) })
		}, ""},
		{"trash of a foreign mount stays", func(w *world) { w.setAside() }, history.NoLeak},
		{"trash goes a little later", func(w *world) {
			trash := filepath.Join(w.work, host.TrashName, "x")
			w.try(os.MkdirAll(trash, 0o755))
			time.AfterFunc(tolerance/2, func() { w.try(os.Remove(trash)) })
		}, ""},
		{"unknown data stays", func(w *world) { w.try(os.MkdirAll(filepath.Join(w.work, "pod", "csi"), 0o755)) }, history.NoLeak},
		{"empty pod directory stays", func(w *world) { w.try(os.Mkdir(filepath.Join(w.work, "pod"), 0o755)) }, history.NoLeak},
		{"the driver's own files stay", func(w *world) {
			w.try(os.Mkdir(filepath.Join(w.work, ".records"), 0o755))
			w.try(os.WriteFile(filepath.Join(w.work, "katbox.db"), nil, 0o644))
		}, ""},
		{"mount stays", func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mounts[filepath.Join(w.kubelet, "pods", "x")] = true
			w.mounts[w.work] = true // may be one itself
		}, history.NoLeak},
	}
	for i, played := range stories {
		stories[i].do = func(w *world) {
			played.do(w)
			w.finish()
			if left := w.checker.Counts(); left.Following != 0 || left.Published != 0 {
				w.t.Errorf("at the end %d published and %d followed volumes, want none", left.Published, left.Following)
			}
		}
	}
	tell(t, nil, stories)
}

func TestCounts(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		v := w.retain(1)
		time.Sleep(lifespan / 2)
		if n := w.checker.Counts(); n.Following != 1 || n.Seen != 0 || n.PressureFactor != 1 {
			t.Errorf("in the middle %+v, want one that is followed", n)
		}
		time.Sleep(lifespan/2 + time.Second)
		w.remove(v)
		w.free(75)
		evicted := w.retain(2)
		time.Sleep(lifespan/2 + time.Second)
		w.remove(evicted)
		w.finish()
		n := w.checker.Counts()
		if n.Seen != 1 || n.Expired != 1 || n.Evicted != 1 || n.PressureFactor != 0.5 {
			t.Errorf("at the end %+v, want one seen, one expired, one evicted, factor 0.5", n)
		}
		if len(n.Lateness) != 1 || n.Lateness[0] < time.Second-dueInterval || n.Lateness[0] > time.Second+2*dueInterval {
			t.Errorf("lateness %v, want one of about a second", n.Lateness)
		}
		w.want("", 0)
	})
}

// TestManyAreForgotten: a long run must not remember what is over.
func TestManyAreForgotten(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		for i := range 500 {
			v := w.retain(i)
			time.AfterFunc(lifespan+50*time.Millisecond, func() { w.remove(v) })
			time.Sleep(100 * time.Millisecond)
		}
		w.finish()
		c := w.checker
		c.mu.Lock() // Finish has ended, and Run has not yet
		// One that was found gone out of its turn is dropped in its turn.
		c.due = slices.DeleteFunc(c.due, func(r *retained) bool { return r.over })
		if len(c.due)+len(c.ages)+len(c.retained.places)+len(c.byVolume)+len(c.excused)+len(c.spoilt) != 0 {
			t.Errorf("still remembered: %d due, %d by age, %d retained, %d published, %d excused, %d spoilt",
				len(c.due), len(c.ages), len(c.retained.places), len(c.byVolume), len(c.excused), len(c.spoilt))
		}
		c.mu.Unlock()
		if n := c.Counts(); n.Seen != 500 || n.Expired != 500 {
			t.Errorf("%d seen and %d expired, want 500 of each", n.Seen, n.Expired)
		}
		w.want("", 0)
	})
}

func TestCannotCheck(t *testing.T) {
	inWorld(t, func(c *Config) { c.Disk = func() (Space, error) { return Space{}, errors.New("broken") } }, func(w *world) {
		time.Sleep(time.Second)
		if err := w.checker.Finish(w.t.Context()); err == nil {
			t.Error("the disk could not be measured, and Finish does not say so")
		}
	})
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{Work: "w"}); err == nil || err.Error() != "check: Config.Kubelet is missing" {
		t.Errorf("error %v, want one that names the field", err)
	}
}

// setAside lets the driver put a volume into the trash in which something is
// mounted until then. It returns where that is.
func (w *world) setAside() string {
	v := w.retain(1)
	relieve := v.Afflict(workload.ForeignMount, "mounted inside")
	time.Sleep(lifespan)
	trash := filepath.Join(w.work, host.TrashName, "x")
	w.try(os.Mkdir(filepath.Dir(trash), 0o755))
	w.try(os.Rename(v.Data, trash))
	w.try(os.RemoveAll(filepath.Join(trash, marker)))
	w.try(os.Remove(filepath.Dir(v.Data)))
	relieve()
	return trash
}
