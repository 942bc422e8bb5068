package ephemeral

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// firstProject is the first ID of the nodes of these tests.
const firstProject = 100

// fakeQuotas are the project quotas of a file system. A directory's project counts as one inode
// until the directory is gone.
type fakeQuotas struct {
	mu    sync.Mutex
	state quota.State
	// dirs are the directories by project, limits the limits.
	dirs   map[uint32]string
	limits map[uint32]volume.Size
	// modes are the permissions that directories had when they got their project.
	modes map[uint32]fs.FileMode
	// more is use by files of others.
	more map[uint32]volume.Size
	// refused is why no project can be set.
	refused error
	// events are what was done, in order.
	events []string
}

func newFakeQuotas() *fakeQuotas {
	return &fakeQuotas{state: quota.Enforced, dirs: map[uint32]string{}, limits: map[uint32]volume.Size{},
		modes: map[uint32]fs.FileMode{}, more: map[uint32]volume.Size{}}
}

func (q *fakeQuotas) State() (quota.State, error) { return q.state, nil }
func (q *fakeQuotas) Inside() uint32              { return 0 }
func (q *fakeQuotas) Enforce() (bool, error)      { return true, nil }

func (q *fakeQuotas) SetProject(fd int, id uint32) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refused != nil {
		return q.refused
	}
	path, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	maps.DeleteFunc(q.dirs, func(_ uint32, other string) bool { return other == path }) // it was removed
	q.dirs[id], q.modes[id] = path, info.Mode()
	q.events = append(q.events, fmt.Sprint("project ", id))
	return nil
}

func (q *fakeQuotas) Project(fd int) (uint32, error) {
	path, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, dir := range q.dirs {
		if dir == path {
			return id, nil
		}
	}
	return 0, nil
}

func (q *fakeQuotas) SetLimit(id uint32, limit volume.Size) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits[id] = limit
	q.events = append(q.events, fmt.Sprintf("limit %d %d", id, limit))
	return nil
}

func (q *fakeQuotas) Read(id uint32) (quota.Quota, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := quota.Quota{ID: id, Limit: q.limits[id], Used: q.more[id]}
	if _, err := os.Stat(q.dirs[id]); err == nil {
		found.Used = found.Used.Add(volume.Size{Bytes: 4096, Inodes: 1})
	}
	return found, nil
}

func (q *fakeQuotas) From(id uint32) iter.Seq2[quota.Quota, error] {
	q.mu.Lock()
	ids := slices.Sorted(maps.Keys(q.dirs))
	q.mu.Unlock()
	return func(yield func(quota.Quota, error) bool) {
		for _, have := range ids {
			if have >= id && !yield(q.Read(have)) {
				return
			}
		}
	}
}

func (q *fakeQuotas) happened() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.events)
}

func (q *fakeQuotas) list() *list[string] { return &list[string]{all: q.happened()} }

func (q *fakeQuotas) wantLimit(t *testing.T, when string, id uint32, want volume.Size) {
	t.Helper()
	if got, _ := q.Read(id); got.Limit != want {
		t.Errorf("%s: project %d has the limit %+v, want %+v", when, id, got.Limit, want)
	}
}

// withQuotas runs a test with a node on a file system with quotas.
func withQuotas(t *testing.T, test func(t *testing.T, h *testNode, q *fakeQuotas)) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newTestNode(t), newFakeQuotas()
		h.quotas = q
		h.start()
		test(t, h, q)
		h.stop()
	})
}

var testLimit = volume.Size{Bytes: 1 << 20, Inodes: 10}

func (h *testNode) limited() volume.Publication {
	p := h.publication()
	p.Terms = volume.Terms{Lifespan: testLifespan, LifespanSucceeded: testLifespan, Limit: testLimit}
	return p
}

func (h *testNode) publishLimited() {
	h.t.Helper()
	if err := h.node.Publish(h.t.Context(), h.limited()); err != nil {
		h.t.Fatal(err)
	}
}

// TestProjectOfAVolume from its publish to its end.
func TestProjectOfAVolume(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		var recorded []string
		h.records.fail(func(changes []volume.Change) error {
			for _, c := range changes {
				if c.Record == nil {
					recorded = append(recorded, fmt.Sprintf("forgotten after %d events", len(q.happened())))
				} else {
					recorded = append(recorded, fmt.Sprintf("%s with project %d after %d events", c.Record.Phase, c.Record.Project, len(q.happened())))
				}
			}
			return nil
		})
		h.publishLimited()
		if mode := q.modes[firstProject]; mode.Perm()&0o022 != 0 {
			t.Errorf("pods could write before the project was set: %v", mode)
		}
		q.wantLimit(t, "published", firstProject, testLimit)
		stats, err := h.node.Stats(t.Context(), testID, h.limited().Target.Path)
		if err != nil || stats.Used != (volume.Size{Bytes: 4096, Inodes: 1}) || stats.Space.Total != testLimit {
			t.Errorf("stats %+v, %v", stats, err)
		}
		h.publishLimited() // the kubelet asks again
		h.restart()
		h.publishLimited()
		h.unpublish()
		q.wantLimit(t, "retained", firstProject, testLimit)
		h.restart()
		time.Sleep(testLifespan + time.Minute)
		h.wantGone(testPod, testID)
		q.wantLimit(t, "erased", firstProject, volume.Size{})
		wantEvents := []string{"project 100", "limit 100 {1048576 10}", "limit 100 {0 0}"}
		if got := q.happened(); !slices.Equal(got, wantEvents) {
			t.Errorf("events %q, want %q", got, wantEvents)
		}
		first, last := recorded[0], recorded[len(recorded)-1]
		if first != "Publishing with project 100 after 0 events" || last != "forgotten after 3 events" {
			t.Errorf("recorded %q", recorded)
		}
		h.publishLimited()
		if r := h.wantPhase(testID, volume.Publishing); r.Project != firstProject {
			t.Errorf("the next volume has project %d", r.Project)
		}
	})
}

// TestChangedLimitOfAVolume is set again within a minute, also if it was changed while the daemon was away, and the log
// says of which volume.
func TestChangedLimitOfAVolume(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		change := func(to volume.Size) {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.limits[firstProject] = to
		}
		change(volume.Size{})
		time.Sleep(limitsInterval + time.Second)
		synctest.Wait()
		q.wantLimit(t, "a minute later", firstProject, testLimit)
		metricstest.Of(t, h.metrics).Want(t, "once", metricstest.Values{"katbox_quota_limits_changed_total": 1})
		h.stop()
		change(volume.Size{Bytes: 1 << 50})
		h.start()
		synctest.Wait()
		q.wantLimit(t, "after a start", firstProject, testLimit)
		change(volume.Size{Bytes: 1})
		if stats, err := h.node.Stats(t.Context(), testID, h.limited().Target.Path); err != nil || stats.Space.Total != testLimit {
			t.Errorf("%+v, %v", stats, err)
		}
		h.unpublish()
		change(volume.Size{})
		r, _ := h.records.get(testID)
		if used, limit, err := h.node.env.occupied(t.Context(), &r, nil); err != nil || limit != testLimit {
			t.Errorf("retained: %+v, %+v, %v", used, limit, err)
		}
		time.Sleep(testLifespan + 2*time.Minute)
		h.wantGone(testPod, testID)
		q.wantLimit(t, "erased", firstProject, volume.Size{})
	})
}

// TestProjectIsRefused by the file system: the volume has none, and its record says so before a pod
// can write. Want of room ends the publish.
func TestProjectIsRefused(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		q.refused = unix.EDQUOT
		wantError(t, h.node.Publish(t.Context(), h.limited()), volume.ErrNoSpace)
		h.wantGone(testPod, testID)
		q.refused = unix.EOPNOTSUPP
		h.publishLimited()
		if r := h.wantPhase(testID, volume.Publishing); r.Project != 0 {
			t.Errorf("project %d is recorded", r.Project)
		}
		metricstest.Of(t, h.metrics).Want(t, "refused", metricstest.Values{"katbox_quota_not_enforced_total": 1, "katbox_quota_projects": 0})
		stats, err := h.node.Stats(t.Context(), testID, h.limited().Target.Path)
		if err != nil || stats.Space.Total.Bytes <= testLimit.Bytes || stats.Used.Inodes != 1 {
			t.Errorf("stats %+v, %v", stats, err)
		}
	})
}

// TestFailedPublishKeepsNoProject: neither an ID nor a limit.
func TestFailedPublishKeepsNoProject(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.mounter.fail(always(unix.EIO), nil)
		wantError(t, h.node.Publish(t.Context(), h.limited()), volume.ErrFailed)
		h.wantGone(testPod, testID)
		q.wantLimit(t, "after the failure", firstProject, volume.Size{})
		h.mounter.fail(nil, nil)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		wantError(t, h.node.Publish(t.Context(), h.limited()), volume.ErrFailed)
		h.records.fail(nil)
		metricstest.Of(t, h.metrics).Want(t, "after the failures", metricstest.Values{"katbox_quota_projects": 0})
	})
}

// TestFailedPublishBringsNoProjectBack: a volume that had to give its project back when its directory was
// made anew does not have it again when the publish fails, because the next volume may get it.
func TestFailedPublishBringsNoProjectBack(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		h.unpublish()
		synctest.Wait()
		if err := os.RemoveAll(h.data(testPod, testID)); err != nil {
			t.Fatal(err)
		}
		q.refused = unix.EOPNOTSUPP
		h.mounter.fail(always(unix.EIO), nil)
		wantError(t, h.node.Publish(t.Context(), h.limited()), volume.ErrFailed)
		h.mounter.fail(nil, nil)
		if r := h.wantPhase(testID, volume.Retained); r.Project != 0 {
			t.Errorf("project %d is recorded, and free", r.Project)
		}
	})
}

// TestDirectoryThatExistsGetsNoProject: it may have any number of files.
func TestDirectoryThatExistsGetsNoProject(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		if _, err := h.scratch.Create(h.limited().Place()); err != nil {
			t.Fatal(err)
		}
		h.publishLimited()
		if r := h.wantPhase(testID, volume.Publishing); r.Project != 0 || len(q.happened()) > 0 {
			t.Errorf("project %d, %q", r.Project, q.happened())
		}
	})
}

// TestLimitIsRequired refuses what cannot be limited, and leaves nothing.
func TestLimitIsRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q := newTestNode(t), newFakeQuotas()
		q.state, h.quotas, h.quotaMode = quota.Accounted, q, quota.Required
		h.start()
		err := h.node.Publish(t.Context(), h.limited())
		wantError(t, err, volume.ErrFailed)
		wantError(t, err, quota.ErrNotEnforced)
		h.wantGone(testPod, testID)
		h.publish()
		h.stop()
	})
}

// TestProjectWaitsForItsFiles: a restart in the middle of an erasure, and files of others, keep an ID
// from being given away.
func TestProjectWaitsForItsFiles(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		h.unpublish()
		q.mu.Lock()
		q.more[firstProject] = volume.Size{Inodes: 3}
		q.mu.Unlock()
		time.Sleep(testLifespan + 2*time.Minute)
		h.wantGone(testPod, testID)
		metricstest.Of(t, h.metrics).Want(t, "with files of others", metricstest.Values{"katbox_quota_foreign_projects": 1})
		h.restart()
		metricstest.Of(t, h.metrics).Want(t, "after a restart", metricstest.Values{"katbox_quota_foreign_projects": 1})
		h.publishLimited()
		if r := h.wantPhase(testID, volume.Publishing); r.Project != firstProject+1 {
			t.Errorf("project %d", r.Project)
		}
		q.mu.Lock()
		clear(q.more)
		q.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		metricstest.Of(t, h.metrics).Want(t, "without them", metricstest.Values{"katbox_quota_foreign_projects": 0, "katbox_quota_projects": 1})
	})
}

// wantUsage asks what a volume takes, as an administrator does.
func (h *testNode) wantUsage(when string, r volume.Record, want volume.Size) {
	h.t.Helper()
	got, err := h.node.Usage(h.t.Context(), r, func(context.Context) error { return nil })
	if err != nil || got != want {
		h.t.Errorf("%s: %+v (%v), want %+v", when, got, err, want)
	}
}

// TestSizeOfAProject: volumes are measured by one question, those without a project by a walk.
func TestSizeOfAProject(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		h.writeMarker(testPod, testID)
		h.unpublish()
		time.Sleep(time.Minute)
		synctest.Wait()
		metricstest.Of(t, h.metrics).Want(t, "retained", metricstest.Values{"katbox_retained_bytes": 4096})
		q.mu.Lock()
		q.more[firstProject] = volume.Size{Bytes: 1000}
		q.mu.Unlock()
		r, _ := h.records.get(testID)
		if used, limit, err := h.node.env.occupied(t.Context(), &r, nil); err != nil || used.Bytes != 5096 || limit != testLimit {
			t.Errorf("%+v, %+v, %v", used, limit, err)
		}
		h.wantUsage("a project", r, volume.Size{Bytes: 5096, Inodes: 1})
		r.Project = 0
		if used, limit, err := h.node.env.occupied(t.Context(), &r, nil); err != nil || used.Inodes != 2 || limit != (volume.Size{}) {
			t.Errorf("without a project: %+v, %+v, %v", used, limit, err)
		} else {
			h.wantUsage("without a project", r, used)
		}
	})
}

func TestWithin(t *testing.T) {
	type size = volume.Size
	is := volume.Space{Total: volume.Size{Bytes: 1000, Inodes: 100}, Free: volume.Size{Bytes: 300, Inodes: 50}}
	btrfs := volume.Space{Total: volume.Size{Bytes: 1000}, Free: volume.Size{Bytes: 300}}
	for _, tt := range []struct {
		name              string
		is                volume.Space
		limit, used, want volume.Size
		free              volume.Size
	}{
		{"no limit", is, size{}, size{Bytes: 7}, is.Total, is.Free},
		{"bytes", is, size{Bytes: 100}, size{Bytes: 30, Inodes: 1}, size{Bytes: 100, Inodes: 100}, size{Bytes: 70, Inodes: 50}},
		{"inodes", is, size{Inodes: 10}, size{Bytes: 30, Inodes: 4}, size{Bytes: 1000, Inodes: 10}, size{Bytes: 300, Inodes: 6}},
		{"more than is free", is, size{Bytes: 900}, size{Bytes: 30}, size{Bytes: 900, Inodes: 100}, size{Bytes: 300, Inodes: 50}},
		{"used more", is, size{Bytes: 100}, size{Bytes: 130}, size{Bytes: 100, Inodes: 100}, size{Inodes: 50}},
		{"larger than the disk", is, size{Bytes: 2000, Inodes: 2000}, size{Bytes: 30}, is.Total, is.Free},
		{"any number of inodes", btrfs, size{Inodes: 10}, size{Inodes: 4}, size{Bytes: 1000, Inodes: 10}, size{Bytes: 300, Inodes: 6}},
	} {
		if got := within(tt.is, tt.limit, tt.used); got.Total != tt.want || got.Free != tt.free {
			t.Errorf("%s: %+v, want %+v with %+v free", tt.name, got, tt.want, tt.free)
		}
	}
	if got := within(btrfs, volume.Size{Inodes: math.MaxInt64}, volume.Size{}); got.Total.Inodes != math.MaxInt64 {
		t.Errorf("%+v", got)
	}
}

// TestCopyOfAWorkingDirectory: cp copies no projects. A volume's size is measured by a walk then, and its limit is shown
// as not enforced until the volume is published again, with another project: the former one may be that of other files.
func TestCopyOfAWorkingDirectory(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		h.writeMarker(testPod, testID)
		h.unpublish()
		h.stop()
		q.mu.Lock()
		clear(q.dirs)
		clear(q.limits)
		q.mu.Unlock()
		lines := &list[string]{}
		h.log = funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		h.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		metricstest.Of(t, h.metrics).Want(t, "of a copy", metricstest.Values{"katbox_quota_stray_volumes": 1})
		if d, err := h.node.Describe(t.Context(), testID); err != nil || !d.LimitNotEnforced || d.Size.Inodes != 2 {
			t.Errorf("of a copy: %+v, %v", d, err)
		}
		if got := mentioning(lines, "do not have the project of its record", string(testPod)); got != 1 {
			t.Errorf("%d lines about it", got)
		}

		h.publishLimited()
		r := h.wantPhase(testID, volume.Publishing)
		if r.Project != firstProject+1 || q.dirs[r.Project] != h.data(testPod, testID) {
			t.Errorf("published with project %d, of %q", r.Project, q.dirs[r.Project])
		}
		q.wantLimit(t, "published", r.Project, testLimit)
		if got := mentioning(q.list(), fmt.Sprint("project ", r.Project)); got != 2 {
			t.Errorf("%d files and directories got the project, want 2", got)
		}
		metricstest.Of(t, h.metrics).Want(t, "published", metricstest.Values{"katbox_quota_stray_volumes": 0, "katbox_quota_projects": 1})
		if stats, err := h.node.Stats(t.Context(), testID, h.limited().Target.Path); err != nil || stats.Space.Total != testLimit {
			t.Errorf("published: %+v, %v", stats, err)
		}
		h.restart()
		if d, err := h.node.Describe(t.Context(), testID); err != nil || d.LimitNotEnforced {
			t.Errorf("published: %+v, %v", d, err)
		}
	})
}

// TestProjectThatCannotBeSetAgain: the volume is published, and its limit is shown as not enforced; unless that is
// required.
func TestProjectThatCannotBeSetAgain(t *testing.T) {
	for _, mode := range []quota.Mode{quota.Auto, quota.Required} {
		synctest.Test(t, func(t *testing.T) {
			h, q := newTestNode(t), newFakeQuotas()
			h.quotas, h.quotaMode = q, mode
			h.start()
			h.publishLimited()
			h.unpublish()
			q.mu.Lock()
			clear(q.dirs)
			q.refused = unix.EIO
			q.mu.Unlock()
			err := h.node.Publish(t.Context(), h.limited())
			if mode == quota.Required {
				wantError(t, err, quota.ErrNotEnforced)
			} else if err != nil {
				t.Error(err)
			}
			if d, err := h.node.Describe(t.Context(), testID); err != nil || !d.LimitNotEnforced {
				t.Errorf("%s: %+v, %v", mode, d, err)
			}
			metricstest.Of(t, h.metrics).Want(t, string(mode), metricstest.Values{"katbox_quota_projects": 1})
			h.stop()
		})
	}
}

// mentioning counts the lines of a log that have all parts.
func mentioning(lines *list[string], parts ...string) (count int) {
	for _, line := range lines.get() {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			count++
		}
	}
	return count
}

// TestLimitThatIsNotEnforced is shown as such, and each volume has its line in the log. Where it is enforced nothing is
// said, nor of a volume without one.
func TestLimitThatIsNotEnforced(t *testing.T) {
	for name, tt := range map[string]struct {
		state   quota.State
		refused error
		limit   volume.Size
		want    bool
	}{
		"enforced":        {state: quota.Enforced, limit: testLimit},
		"counted alone":   {state: quota.Accounted, limit: testLimit, want: true},
		"no quotas":       {state: quota.None, limit: testLimit, want: true},
		"refused":         {state: quota.Enforced, refused: unix.EOPNOTSUPP, limit: testLimit, want: true},
		"without a limit": {state: quota.None},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, q, lines := newTestNode(t), newFakeQuotas(), &list[string]{}
				q.state, q.refused, h.quotas = tt.state, tt.refused, q
				h.log = funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
				h.start()
				p := h.limited()
				p.Terms.Limit = tt.limit
				if err := h.node.Publish(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				for _, phase := range []volume.Phase{volume.Published, volume.Retained} {
					if d, err := h.node.Describe(t.Context(), testID); err != nil || d.Record.Phase != phase || d.LimitNotEnforced != tt.want {
						t.Errorf("%+v, %v, want %s, and not enforced: %t", d, err, phase, tt.want)
					}
					if phase == volume.Published {
						h.unpublish()
						h.restart()
					}
				}
				if got := mentioning(lines, "the limit of a volume is not enforced", string(testPod)); (got == 1) != tt.want {
					t.Errorf("%d lines about it", got)
				}
				h.stop()
			})
		})
	}
}

// TestCutIsLogged once, when it is cut.
func TestCutIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, lines := newTestNode(t), &list[string]{}
		h.log = funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{})
		h.start()
		p := h.publication()
		p.Cut = "lifespan from 3d to 24h"
		for range 2 {
			if err := h.node.Publish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if got := mentioning(lines, "is cut to the bounds", p.Cut, string(testPod)); got != 1 {
			t.Errorf("%d lines about it", got)
		}
		h.stop()
	})
}

// TestNewVolumeIsNoChangedLimit: its record has a limit before the kernel has. Nobody has changed that.
func TestNewVolumeIsNoChangedLimit(t *testing.T) {
	withQuotas(t, func(t *testing.T, h *testNode, q *fakeQuotas) {
		h.publishLimited()
		r, _ := h.records.get(testID)
		r.Phase = volume.Publishing
		q.mu.Lock()
		clear(q.limits)
		q.mu.Unlock()
		h.node.env.held(&r)
		metricstest.Of(t, h.metrics).Want(t, "being published", metricstest.Values{"katbox_quota_limits_changed_total": 0})
		r.Phase = volume.Published
		h.node.env.held(&r)
		metricstest.Of(t, h.metrics).Want(t, "published", metricstest.Values{"katbox_quota_limits_changed_total": 1})
	})
}
