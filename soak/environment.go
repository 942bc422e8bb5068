package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/reader"
	"github.com/katbox/katbox/soak/internal/report"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
	"github.com/katbox/katbox/soak/testbed"
)

const (
	// canaryDirectories is how many there are of the directories that nothing
	// may ever happen to.
	canaryDirectories = 16
	// reaction is how far ahead Katbox expects pods to write on, 2 s, with a margin.
	reaction = 2500 * time.Millisecond
	// tolerance is how long after its deadline data may still be there.
	tolerance = 5 * time.Second
)

// environment is what a run works with: the places, the driver, and those who keep
// account. The pods, the faults and the checks use it.
type environment struct {
	plan     workload.Plan
	layout   testbed.Layout
	disk     *host.Disk
	canaries *host.Canaries
	driver   daemon.Driver
	api      *kubelet.API

	timeline *history.Timeline
	findings *history.Findings
	checker  *check.Checker
	// locals is nil if no pod has a local volume.
	locals *locals
	// reader is nil in a workload without readers.
	reader *reader.Reader
	// podsAPI is nil if the kubelet does not say how pods end.
	podsAPI  *kubelet.PodsAPI
	report   *report.Run
	injected *counts
	// calls is how many answers there were.
	calls atomic.Int64
}

// newEnvironment makes everything that a run needs and starts nothing.
func newEnvironment(o options, l testbed.Layout, d daemon.Driver) (*environment, error) {
	s := &environment{
		plan: o.plan(), layout: l, driver: d, api: o.api(), locals: o.locals,
		timeline: &history.Timeline{}, findings: &history.Findings{}, injected: &counts{},
	}
	w := o.workload
	var err error
	makeDisk := host.MakeDisk
	if w.Disk.Quotas {
		makeDisk = host.MakeQuotaDisk
	}
	if s.disk, err = makeDisk(l.Work, l.Image, host.DiskKind(w.Disk.Kind), int64(w.Disk.Size), w.Disk.Inodes); err != nil {
		return nil, err
	}
	if s.canaries, err = host.MakeCanaries(l.Canaries, canaryDirectories); err != nil {
		return nil, errors.Join(err, s.disk.Close())
	}
	if err := s.locals.set(); err != nil {
		return nil, errors.Join(err, s.disk.Close())
	}
	s.checker, err = check.New(check.Config{
		Work: l.Work, Kubelet: l.Kubelet,
		Lifespan: w.Driver.Lifespan.D(), OrphanGrace: w.Driver.OrphanGrace.D(),
		PruneInterval: w.Driver.PruneInterval.D(), Headroom: w.Driver.Headroom, Reaction: o.reaction, Tolerance: o.tolerance,
		ReleaseGrace: w.Driver.ReleaseGrace.D(), Tombstones: w.Reading.Readers > 0, Outcomes: w.Volumes.OnFailure > 0,
		EnoughCalls: o.enoughCalls, MaxPinned: w.Driver.Pinned(), Taken: content.Taken,
		MaxPerOwner: w.Driver.MaxPerOwner,
		Timeline:    s.timeline, Findings: s.findings,
		Disk: s.space, Mounted: host.MountedAt, MountsBelow: mountPoints,
		Canaries: s.canaries.Check, Look: s.look,
	})
	if err != nil {
		return nil, errors.Join(err, s.locals.tearDown(), s.disk.Close())
	}
	if w.Reading.Readers > 0 {
		s.reader = reader.New(reader.Config{
			Socket: l.Admin, Readers: w.Reading.Readers, Namespaces: s.plan.Namespaces(), Seed: o.seed,
			Checker: s.checker, Findings: s.findings,
		})
	}
	s.report = report.New(report.Options{
		Name: o.name, Workload: w, YAML: w.YAML(), Seed: o.seed, Command: o.again(), Machine: s.machine(),
		Sources: report.Sources{Timeline: s.timeline, Findings: s.findings, Usage: s.usage, Disk: s.free, Kept: s.kept, Read: s.read},
	})
	return s, nil
}

// tearDown removes the environment.
func (s *environment) tearDown() error {
	// After an interruption there may be mounts. They vanish with the
	// namespace, but in here they would keep the directories from going.
	keep := s.locals.disks()
	if s.disk.Own() {
		keep = append(keep, s.layout.Work)
	}
	if err := host.UnmountBelow(s.layout.Dir, 0, keep...); err != nil {
		return fmt.Errorf("clean up: %w; remove %s yourself", err, s.layout.Dir)
	}
	return errors.Join(s.locals.tearDown(), s.disk.Close())
}

// spec is what is in a volume. Its symlinks lead to one of the canaries.
func (s *environment) spec(v *history.Volume) content.Spec {
	return content.Spec{ID: v.ID, Content: v.Content, Outside: s.outside(v.Content.Seed)}
}

// outside is one of the directories that nothing may ever happen to.
func (s *environment) outside(choice uint64) string {
	return s.canaries.Directory(int(choice % canaryDirectories))
}

// The functions below show the parts of the environment to one another, in the words
// of each.

func (s *environment) look(v *history.Volume, dir string) (story.Verb, error) {
	return content.Look(dir, s.spec(v))
}

func (s *environment) space() (check.Space, error) {
	f, err := s.disk.Free()
	return check.Space{
		TotalBytes: uint64(f.TotalBytes), FreeBytes: uint64(f.FreeBytes),
		TotalInodes: uint64(f.TotalInodes), FreeInodes: uint64(f.FreeInodes),
	}, err
}

func (s *environment) free() (report.Disk, bool) {
	f, err := s.space()
	return report.Disk{FreeBytes: f.FreeBytes, TotalBytes: f.TotalBytes, FreeInodes: f.FreeInodes, TotalInodes: f.TotalInodes}, err == nil
}

func (s *environment) usage() (report.Usage, bool) {
	u, ok := s.driver.Usage()
	return report.Usage(u), ok
}

func (s *environment) kept() report.Kept {
	c := s.checker.Counts()
	return report.Kept{
		Following: c.Following, Seen: c.Seen, Expired: c.Expired, Evicted: c.Evicted, Removed: c.Removed, Repeated: c.Repeated,
		Attached: c.Attached,
		Lateness: c.Lateness,
	}
}

func (s *environment) read() report.Read {
	if s.reader == nil {
		return report.Read{}
	}
	return report.Read(s.reader.Counts())
}

func mountPoints(dir string) ([]string, error) {
	mounts, err := host.MountsBelow(dir)
	points := make([]string, 0, len(mounts))
	for _, m := range mounts {
		points = append(points, m.Point)
	}
	return points, err
}

// machine says what the run is on.
func (s *environment) machine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return fmt.Sprintf("Linux %s on %d CPUs, working directory on %s", unix.ByteSliceToString(u.Release[:]), runtime.NumCPU(), s.disk.Kind())
}
