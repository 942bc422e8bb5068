package main

import (
	"context"
	"errors"
	"time"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/faults"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// scratch is what happens in one volume while its pod lives, and to it after
// that. Its methods follow one another.
type scratch struct {
	environment *environment
	churn       *churn
	volume      *kubelet.Volume
	filled      content.Filled
	// before is the volume when its pod was here the first time; nil if it was not.
	before *scratch
	// begun says that its containers were started.
	begun bool
	// release ends a fault that outlives the pod; nil if there is none.
	release func() error
}

// begin is what the containers of a pod do first: they write. From then on the
// checker looks after the volume.
func (s *scratch) begin() {
	v := s.volume.Story
	s.begun = true
	s.environment.report.Count.Mounted.Add(1)
	if s.volume.Plan.Persistent {
		return
	}
	if s.before != nil && s.find() {
		return
	}
	dir := v.Target
	if v.ReadOnly {
		if err := content.CheckReadOnly(v.Target); err != nil {
			s.environment.findings.Add(history.ReadOnly, v, err.Error())
		}
		// What a pod cannot write has to come from outside.
		dir = v.Data
	}
	filled, err := content.Fill(dir, s.environment.spec(v))
	s.filled = filled
	switch {
	case isFull(err) && s.volume.Plan.Tight:
		s.environment.checker.RefusedWithinLimit(v, err)
	case isFull(err):
		v.Note("no room for the rest: %v", err)
	case err != nil:
		s.environment.findings.Add(history.PublishedData, v, "it is published, but: "+err.Error())
	}
	if !filled.Marker {
		return
	}
	v.Note("containers run")
	s.environment.checker.Published(v)
	s.afflict()
	s.overfill()
}

// afflict does what a fault does to a volume in use.
func (s *scratch) afflict() {
	f := s.volume.Plan.Trouble
	if f == nil {
		return
	}
	v := s.volume.Story
	var err error
	switch {
	case f.Kind == workload.ForeignMount:
		s.release, err = faults.MountInData(v, s.environment.outside(f.Choice))
	case f.Kind == workload.NestedMount:
		s.release, err = faults.MountInTarget(v, s.environment.outside(f.Choice))
	case f.Kind == workload.VolumeRemoved && f.Choice%2 == 0:
		err = faults.Remove(v)
	case f.Kind == workload.VolumeSymlink && f.Choice%2 == 0:
		err = faults.Replace(v, s.environment.outside(f.Choice))
	default:
		return // its time comes later
	}
	s.did(f, err)
}

// did counts a fault that was done, or reports that it could not be. That there is no room for what the soak itself makes is not the
// driver's doing.
func (s *scratch) did(f *workload.PlannedFault, err error) {
	switch {
	case isFull(err):
		s.volume.Story.Note("without %s: %v", f.Kind, err)
	case err != nil:
		s.churn.failed(s.volume, err)
	default:
		s.environment.injected.add(f.Kind)
	}
}

// finish is the end of the containers: their files have to be there as they were
// written.
func (s *scratch) finish() {
	v := s.volume.Story
	if !s.filled.Marker {
		return
	}
	s.overfill() // the driver may have been killed since the first time
	s.environment.checker.Ending(v)
	if !v.Troubled(time.Time{}, time.Now(), workload.VolumeRemoved, workload.VolumeSymlink) {
		if err := content.Verify(v.Target, s.environment.spec(v), s.filled); err != nil {
			s.environment.findings.Add(history.PublishedData, v, "when its containers ended: "+err.Error())
		}
	}
	if f := s.volume.Plan.Trouble; f != nil && f.Kind == workload.BusyTarget {
		var err error
		s.release, err = faults.Hold(v)
		s.did(f, err)
	}
	v.Note("containers end")
}

// over is what the kubelet says in the end: the checker follows the volume to
// its deadline.
func (s *scratch) over(how kubelet.Outcome) {
	v, plan := s.volume.Story, s.volume.Plan
	v.Note("for the kubelet it is %s", how)
	if v.Attaches != nil {
		return // nothing of it is retained
	}
	if s.begun {
		s.environment.report.Count.Mounted.Add(-1)
	}
	if plan.Publish.Repeat != workload.Once {
		s.environment.report.Count.Doubled.Add(1)
	}
	if plan.Unpublish.Repeat != workload.Once {
		s.environment.report.Count.Doubled.Add(1)
	}
	if plan.Unpublish.Reordered {
		s.environment.report.Count.Reordered.Add(1)
	}
	switch {
	case plan.Persistent:
	case how == kubelet.Unpublished && s.filled.Marker:
		s.checkRetained()
		s.environment.checker.Retained(v)
		s.offer()
	default:
		s.environment.checker.Abandoned(v)
	}
}

// offer lets people read the volume. It is not known what is in one that a fault
// changes, or that its pod filled the disk with.
func (s *scratch) offer() {
	plan := s.environment.plan.Workload()
	f := s.volume.Plan.Trouble
	changed := f != nil && (f.Kind == workload.VolumeRemoved || f.Kind == workload.VolumeSymlink)
	if s.environment.reader != nil && !changed && s.volume.Pod.Plan.Index < plan.Pods {
		s.environment.reader.Retained(s.volume.Story, s.environment.spec(s.volume.Story), s.filled)
	}
}

// checkRetained looks whether the unpublish left all files as they were. The
// marker alone is followed from then on.
func (s *scratch) checkRetained() {
	v := s.volume.Story
	if v.Troubled(time.Time{}, time.Now(), workload.VolumeRemoved, workload.VolumeSymlink) {
		return
	}
	err := content.Verify(v.Data, s.environment.spec(v), s.filled)
	if err == nil {
		return
	}
	// On a full disk it may be evicted meanwhile, as a whole.
	if found, _ := content.Look(v.Data, s.environment.spec(v)); found == story.Whole {
		s.environment.findings.Add(history.Durable, v, "right after the unpublish: "+err.Error())
	}
}

// letGo ends what keeps the target from being unmounted, some time after the
// pod; the run's end does not wait.
func (s *scratch) letGo(ctx context.Context) {
	if f := s.volume.Plan.Trouble; s.release != nil && f.Kind != workload.ForeignMount {
		s.later(ctx, f.For, s.release)
	}
}

// afterlife is what a fault does to a retained volume.
func (s *scratch) afterlife(ctx context.Context) {
	if s.filled.Marker {
		s.decide(ctx)
	}
	f := s.volume.Plan.Trouble
	if f == nil || !s.filled.Marker {
		return
	}
	v, lifespan := s.volume.Story, s.environment.plan.Workload().Driver.Lifespan.D()
	switch {
	case f.Kind == workload.ForeignMount && s.release != nil:
		s.later(ctx, lifespan+f.For, s.release)
	case f.Kind == workload.VolumeRemoved && f.Choice%2 == 1:
		s.later(ctx, f.Delay, func() error {
			s.environment.injected.add(f.Kind)
			return faults.Remove(v)
		})
	case f.Kind == workload.VolumeSymlink && f.Choice%2 == 1:
		s.later(ctx, f.Delay, func() error {
			s.environment.injected.add(f.Kind)
			return faults.Replace(v, s.environment.outside(f.Choice))
		})
	}
}

// decide is what people and other pods do with a retained volume.
func (s *scratch) decide(ctx context.Context) {
	plan, v := s.volume.Plan, s.volume.Story
	for _, decided := range []struct {
		after time.Duration
		do    func()
	}{
		{plan.RemovedAfter, func() { s.environment.reader.Remove(ctx, v) }},
		{plan.PinnedAfter, func() { s.environment.reader.Pin(ctx, v, plan.PinnedFor) }},
		{plan.ReleasedAfter, func() { s.environment.reader.Release(ctx, v) }},
		{plan.AttachedAfter, func() { s.attach(ctx) }},
	} {
		if decided.after > 0 {
			s.later(ctx, decided.after, func() error { decided.do(); return nil })
		}
	}
}

// later does something after a time, or when the run ends.
func (s *scratch) later(ctx context.Context, after time.Duration, do func() error) {
	s.churn.afterlives.Go(func() {
		_ = pause.For(ctx, after)
		err := do()
		switch {
		case errors.Is(err, faults.ErrTakenAway):
			s.environment.findings.Add(history.PublishedData, s.volume.Story, err.Error())
		case err != nil:
			s.churn.failed(s.volume, err)
		}
	})
}
