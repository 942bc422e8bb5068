package check_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
)

// trial is a small run by hand against a driver that has a bug.
type trial struct {
	t        *testing.T
	dir      string
	driver   *fakedriver.Driver
	checker  *check.Checker
	findings history.Findings
	timeline history.Timeline
	volumes  []*history.Volume
}

const (
	marker   = "marker"
	lifespan = 3 * time.Second
)

func (r *trial) try(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

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

func mountsBelow(dir string) (found []string, err error) {
	infos, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(i.Mountpoint, dir+"/"), false
	})
	for _, i := range infos {
		found = append(found, i.Mountpoint)
	}
	return found, err
}

func (r *trial) disk() (check.Space, error) {
	var s unix.Statfs_t
	err := unix.Statfs(r.dir, &s)
	return check.Space{TotalBytes: s.Blocks, FreeBytes: s.Bavail, TotalInodes: s.Files, FreeInodes: s.Ffree}, err
}

// newTrial starts a driver on a small disk of its own.
func newTrial(t *testing.T, bug fakedriver.Bug, headroom float64) *trial {
	t.Helper()
	mounttest.Need(t)
	dir, err := os.MkdirTemp("", "check") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	r := &trial{t: t, dir: dir}
	r.try(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"))
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	work, kubelet := filepath.Join(dir, "work"), filepath.Join(dir, "kubelet")
	r.try(errors.Join(os.Mkdir(work, 0o755), os.MkdirAll(filepath.Join(kubelet, "pods"), 0o755)))
	const grace, prune = 200 * time.Millisecond, 50 * time.Millisecond
	r.driver, err = fakedriver.New(fakedriver.Config{
		Socket: filepath.Join(dir, "s"), Work: work, Kubelet: kubelet, Lifespan: lifespan, Headroom: headroom,
		OrphanGrace: grace, PruneInterval: prune, Bug: bug,
	})
	r.try(err)
	r.checker, err = check.New(check.Config{
		Work: work, Kubelet: kubelet, Lifespan: lifespan, OrphanGrace: grace, PruneInterval: prune,
		Tolerance: 1500 * time.Millisecond, Headroom: headroom, Timeline: &r.timeline, Findings: &r.findings,
		Disk: r.disk, Mounted: mountinfo.Mounted, MountsBelow: mountsBelow, Look: look, Canaries: func() error { return nil },
	})
	r.try(err)
	r.try(r.driver.Start(t.Context()))
	t.Cleanup(func() { _ = r.driver.Kill() }) // it may have ended
	for i := range 6 {
		pod, id := fmt.Sprintf("pod-%d", i), fmt.Sprintf("csi-%d", i)
		r.volumes = append(r.volumes, &history.Volume{
			ID: id, Pod: pod, Name: "data",
			Target: filepath.Join(kubelet, "pods", pod, "mount"), Data: filepath.Join(work, pod, id),
		})
	}
	return r
}

// call makes a call on a connection of its own, as the kubelet does.
func (r *trial) call(v *history.Volume, m history.Method, do func(csi.NodeClient) error) error {
	conn, err := testbed.Dial(filepath.Join(r.dir, "s"))
	r.try(err)
	defer conn.Close()
	c := v.Begin(m, false)
	err = do(csi.NewNodeClient(conn))
	r.checker.Called(v, v.End(c, err))
	return err
}

func (r *trial) publish(v *history.Volume) error {
	return r.call(v, history.Publish, func(client csi.NodeClient) error {
		_, err := client.NodePublishVolume(r.t.Context(), testbed.Publish(v.ID, v.Target, v.Pod, nil))
		return err
	})
}

func (r *trial) unpublish(v *history.Volume) error {
	return r.call(v, history.Unpublish, func(client csi.NodeClient) error {
		_, err := client.NodeUnpublishVolume(r.t.Context(), testbed.Unpublish(v.ID, v.Target))
		return err
	})
}

func (r *trial) restart() {
	over := r.timeline.Begin(workload.DaemonKill, "")
	r.try(r.driver.Kill())
	r.try(r.driver.Start(r.t.Context()))
	over()
	r.checker.DaemonReady()
}

// live takes the volumes through their lives: the first is orphaned, the others
// are published and unpublished, each twice, the later ones later. In between
// the driver is killed and its clock is set.
func (r *trial) live(between func()) {
	for _, v := range r.volumes {
		r.try(os.MkdirAll(filepath.Dir(v.Target), 0o755))
		for range 2 {
			for r.publish(v) != nil && r.findings.Sum() < 20 {
				time.Sleep(50 * time.Millisecond)
			}
		}
		r.try(os.WriteFile(filepath.Join(v.Target, marker), nil, 0o644))
		r.checker.Published(v)
	}
	time.Sleep(time.Second)
	r.restart()
	for i, v := range r.volumes {
		if i == 0 {
			v.Afflict(workload.PodRemoved, "removed")
			r.checker.Ending(v)
			if err := unix.Unmount(v.Target, 0); !errors.Is(err, unix.EINVAL) { // some bug was faster
				r.try(err)
			}
			r.try(os.RemoveAll(filepath.Dir(v.Target)))
			r.checker.Abandoned(v)
			continue
		}
		r.checker.Ending(v)
		for range 2 {
			for r.unpublish(v) != nil && r.findings.Sum() < 20 {
				time.Sleep(50 * time.Millisecond)
			}
		}
		r.checker.Retained(v)
		if i == 2 {
			time.Sleep(1200 * time.Millisecond)
		}
	}
	between()
}

// play lives through a trial, with the checker running.
func (r *trial) play(between func(*trial)) {
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.checker.Run(ctx)
	}()
	r.live(func() { between(r) })
	if err := r.checker.Finish(ctx); err != nil {
		r.t.Error(err)
	}
	cancel()
	<-ended
	_ = r.driver.Kill() // it may have ended
}

// untilCalm plays a trial. On a machine that lets timers come late it says nothing, and
// is played again.
func untilCalm(t *testing.T, play func() *trial) *trial {
	t.Helper()
	const tries, interval, slow = 10, 20 * time.Millisecond, 200 * time.Millisecond
	for try := 1; ; try++ {
		ctx, cancel := context.WithCancel(t.Context())
		latest := make(chan time.Duration, 1)
		go func() {
			var late time.Duration
			for due := time.Now().Add(interval); pause.For(ctx, interval) == nil; due = time.Now().Add(interval) {
				late = max(late, time.Since(due))
			}
			latest <- late
		}()
		r := play()
		cancel()
		late := <-latest
		if late < slow || try == tries {
			return r
		}
		t.Logf("try %d: a timer came %s late", try, late)
	}
}

// TestBugs proves that an honest driver passes and that each bug is found, and
// nothing else.
func TestBugs(t *testing.T) {
	nothing := func(*trial) {}
	kill := func(r *trial) { r.restart() }
	step := func(r *trial) {
		r.timeline.Begin(workload.ClockStep, "+1h")()
		r.driver.SetClock(time.Hour)
	}
	pressed := func(r *trial) {
		// Three quarters of the headroom are free then.
		r.try(os.WriteFile(filepath.Join(r.dir, "ballast"), make([]byte, 10<<20), 0o644))
	}
	full := func(r *trial) {
		over := r.timeline.Begin(workload.DiskFull, "")
		ballast := filepath.Join(r.dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 17<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
			r.t.Errorf("fill the disk: %v", err)
		}
		time.Sleep(lifespan)
		r.try(os.Remove(ballast))
		over()
	}
	for _, test := range []struct {
		bug      fakedriver.Bug
		headroom float64
		between  func(*trial)
	}{
		{"", 0.1, func(r *trial) { kill(r); step(r); full(r) }},
		{fakedriver.LosesFiles, 0, nothing},
		{fakedriver.MovesData, 0, nothing},
		{fakedriver.Unmounts, 0, nothing},
		{fakedriver.ForgetsRetained, 0, kill},
		{fakedriver.RestartsDeadlines, 0, func(r *trial) { time.Sleep(lifespan * 3 / 4); kill(r) }},
		{fakedriver.DeletesEarly, 0, nothing},
		{fakedriver.KeepsTooLong, 0, nothing},
		{fakedriver.DeletesHalf, 0, nothing},
		{fakedriver.EvictsNewest, 0.5, pressed},
		{fakedriver.LiesOfFailure, 0, nothing},
		{fakedriver.RefusesRepeats, 0, nothing},
		{fakedriver.RefusesUnknown, 0, nothing},
		{fakedriver.LeavesTargets, 0, nothing},
		{fakedriver.LeavesMounts, 0, nothing},
		{fakedriver.KeepsTrash, 0, nothing},
		{fakedriver.KeepsOrphans, 0, nothing},
		{fakedriver.TrustsWallClock, 0, step},
	} {
		t.Run("bug: "+string(test.bug), func(t *testing.T) {
			t.Parallel()
			r := untilCalm(t, func() *trial {
				r := newTrial(t, test.bug, test.headroom)
				r.play(test.between)
				return r
			})
			want := test.bug.Breaks()
			if n := r.findings.Number(want); n != r.findings.Sum() || (n == 0) != (test.bug == "") {
				t.Errorf("%d violations, %d of them of %q", r.findings.Sum(), n, want)
			}
			for _, v := range r.findings.All() {
				if v.Promise != want {
					t.Errorf("%s: %s: %s", v.Promise, v.Volume, v.What)
				}
			}
		})
	}
}
