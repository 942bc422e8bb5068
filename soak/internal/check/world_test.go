package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/story"
)

const (
	lifespan  = 30 * time.Second
	tolerance = 5 * time.Second
	grace     = 4 * time.Second
	prune     = time.Second
)

// world is a node without a driver: a test plays it. A symlink stands for a
// mount, so that the target shows the data directory.
type world struct {
	t        *testing.T
	checker  *Checker
	findings history.Findings
	timeline history.Timeline
	work     string
	kubelet  string

	mu     sync.Mutex
	mounts map[string]bool
	space  Space
	canary error
}

// inWorld runs a test with a running checker and a clock of its own.
func inWorld(t *testing.T, change func(*Config), do func(*world)) *world {
	t.Helper()
	w := &world{t: t, work: t.TempDir(), kubelet: t.TempDir(), mounts: make(map[string]bool), space: Space{TotalBytes: 1000, FreeBytes: 1000}}
	defer func() { w.t = t }()
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		cfg := Config{
			Work: w.work, Kubelet: w.kubelet, Lifespan: lifespan, OrphanGrace: grace, PruneInterval: prune, Tolerance: tolerance,
			Headroom: 0.1, Timeline: &w.timeline, Findings: &w.findings,
			Disk: w.disk, Mounted: w.mounted, MountsBelow: w.mountsBelow, Look: look,
			Canaries: func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.canary },
		}
		if change != nil {
			change(&cfg)
		}
		var err error
		if w.checker, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.checker.Run(ctx)
		}()
		do(w)
		cancel()
		<-ended
	})
	return w
}

// played is what a test plays, and the promise that is broken once by it; none if that is empty.
type played struct {
	name string
	do   func(*world)
	want history.Promise
}

// tell plays each story in a world of its own.
func tell(t *testing.T, change func(*Config), stories []played) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			n := 0
			if s.want != "" {
				n = 1
			}
			inWorld(t, change, s.do).want(s.want, n)
		})
	}
}

func graceOfASecond(c *Config) { c.ReleaseGrace = time.Second }

// finish ends the run; everything that is followed has to end within an hour.
func (w *world) finish() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	if err := w.checker.Finish(ctx); err != nil {
		w.t.Errorf("finish: %v", err)
	}
}

// want fails the test unless there are so many violations of the promise, and
// none of another.
func (w *world) want(p history.Promise, n int) {
	w.t.Helper()
	if w.findings.Sum() != n || p != "" && w.findings.Number(p) != n {
		w.t.Errorf("%d violations, want %d of %q", w.findings.Sum(), n, p)
		for _, v := range w.findings.All() {
			w.t.Logf("%s: %s", v.Promise, v.What)
		}
	}
}

func (w *world) disk() (Space, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.space, nil
}

func (w *world) mounted(path string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mounts[path], nil
}

func (w *world) mountsBelow(dir string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for path, is := range w.mounts {
		if rel, err := filepath.Rel(dir, path); is && err == nil && rel != "." && filepath.IsLocal(rel) {
			found = append(found, path)
		}
	}
	return found, nil
}

const marker = "marker"

func look(_ *history.Volume, dir string) (story.Verb, error) {
	_, err := os.Stat(filepath.Join(dir, marker))
	if err == nil {
		return story.Whole, nil
	}
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return story.Gone, statErr
	}
	return story.Partial, err
}

// free leaves so much of a disk of 1000 bytes, of which 100 are the headroom.
func (w *world) free(bytes uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.space.FreeBytes = bytes
}

func (w *world) try(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error(err)
	}
}

func (w *world) volume(n int, changes ...func(*history.Volume)) *history.Volume {
	pod, id := fmt.Sprintf("pod-%d", n), fmt.Sprintf("csi-%d", n)
	v := &history.Volume{
		ID: id, Namespace: "ci", PodName: "name-of-" + pod, Pod: pod, Name: "data",
		Target: filepath.Join(w.kubelet, pod, "mount"), Data: filepath.Join(w.work, pod, id),
	}
	for _, change := range changes {
		change(v)
	}
	w.checker.Expect(v)
	return v
}

// mount does what a driver's publish does, and writes the content.
func (w *world) mount(v *history.Volume) {
	w.try(os.MkdirAll(filepath.Dir(v.Target), 0o755))
	w.try(os.MkdirAll(v.Data, 0o755))
	w.try(os.Symlink(v.Data, v.Target))
	w.try(os.WriteFile(filepath.Join(v.Data, marker), nil, 0o644))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mounts[v.Target] = true
}

func (w *world) unmount(v *history.Volume) {
	w.mu.Lock()
	delete(w.mounts, v.Target)
	w.mu.Unlock()
	w.try(os.RemoveAll(v.Target))
}

// call makes a call that is answered after a while.
func (w *world) call(v *history.Volume, m history.Method, takes time.Duration, code codes.Code, do func()) {
	c := v.Begin(m, false)
	time.Sleep(takes)
	if do != nil {
		do()
	}
	var err error
	if code != codes.OK {
		err = status.Error(code, "as the test wants it")
	}
	w.checker.Called(v, v.End(c, err))
}

func (w *world) publish(v *history.Volume) {
	w.call(v, history.Publish, 10*time.Millisecond, codes.OK, func() { w.mount(v) })
	w.checker.Published(v)
}

func (w *world) unpublish(v *history.Volume) {
	w.checker.Ending(v)
	w.call(v, history.Unpublish, 10*time.Millisecond, codes.OK, func() { w.unmount(v) })
	w.checker.Retained(v)
}

// overtaken unpublishes a volume before a publish that was sent earlier arrives, and then again.
func (w *world) overtaken(v *history.Volume) {
	w.checker.Ending(v)
	w.call(v, history.Unpublish, 10*time.Millisecond, codes.OK, func() { w.unmount(v) })
	w.call(v, history.Publish, 10*time.Millisecond, codes.OK, func() { w.mount(v) })
	w.unpublish(v)
}

// retain makes a volume that is retained from now on.
func (w *world) retain(n int) *history.Volume {
	v := w.volume(n)
	w.publish(v)
	w.unpublish(v)
	return v
}

// again publishes a retained volume again, and retains it from then on.
func (w *world) again(n int, before *history.Volume) {
	if !w.checker.Again(before) {
		w.t.Error("it may not be published again")
	}
	w.retain(n)
}

// remove does what a driver's deletion does.
func (w *world) remove(v *history.Volume) {
	trash := filepath.Join(w.work, host.TrashName)
	w.try(os.MkdirAll(trash, 0o755))
	w.try(os.Rename(v.Data, filepath.Join(trash, v.ID)))
	w.try(os.RemoveAll(filepath.Join(trash, v.ID)))
	w.try(os.Remove(filepath.Dir(v.Data)))
}

func (w *world) loseMarker(v *history.Volume) { w.try(os.Remove(filepath.Join(v.Data, marker))) }
