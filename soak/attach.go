package main

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// attachInterval is how often it is asked whether what is to be attached is still there.
const attachInterval = 100 * time.Millisecond

// attach lets another pod of the namespace look at a retained volume for a while. A person
// releases the volume as soon as that pod has it, so that nothing else keeps it.
func (s *scratch) attach(ctx context.Context) {
	source := s.volume.Story
	l := newLife(s.churn, s.environment.plan.Looker(s.volume.Pod.Plan, s.volume.Plan))
	by := l.pod.Volumes[0].Story
	by.Attaches = source
	end := s.environment.checker.BeginAttachment(source, by)
	if ctx.Err() != nil || end == nil {
		return
	}
	s.churn.enter(l)
	defer s.churn.leave(l)
	defer l.gone()
	s.environment.api.Create(l.pod)
	if l.attaches(ctx, source) {
		by.Note("containers look around")
		s.lookAround(by)
		s.environment.reader.Release(ctx, source)
		if pause.For(ctx, s.volume.Plan.AttachedFor) != nil {
			return
		}
		s.lookAround(by)
		by.Note("containers end")
	}
	if s.environment.podsAPI != nil {
		s.environment.podsAPI.Ended(l.pod)
	}
	s.environment.api.Finish(l.pod)
	if wait(ctx, l.isGone) {
		end()
	}
}

// attaches waits until a pod has the volume that it attaches. It is false if that volume
// has gone before, or the run ends.
func (l *life) attaches(ctx context.Context, source *history.Volume) bool {
	for {
		select {
		case <-l.isMounted:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(attachInterval):
			if !l.environment.checker.Follows(source) {
				return false
			}
		}
	}
}

// lookAround is what the containers of a pod do that has attached the volume: all is as it
// was left, and nothing can be written.
func (s *scratch) lookAround(by *history.Volume) {
	if err := content.CheckReadOnly(by.Target); err != nil {
		s.environment.findings.Add(history.Attached, by, err.Error())
	}
	if err := content.Verify(by.Target, s.environment.spec(by.Attaches), s.filled); err != nil {
		s.environment.findings.Add(history.Attached, by, "a pod has it attached, but: "+err.Error())
	}
}
