package main

import (
	"context"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

// again lets a pod live once more, with the volumes that it left: as for a pod that
// the kubelet finds again after it had forgotten it. Nothing comes of it if a volume
// is not there any more, or may go meanwhile.
func (l *life) again(ctx context.Context) {
	if l.planned.Again == 0 || pause.For(ctx, l.planned.Again) != nil {
		return
	}
	before := make(map[string]*scratch)
	var stories []*history.Volume
	for v, s := range l.volumes {
		if !v.Plan.Persistent {
			before[v.Plan.ID], stories = s, append(stories, v.Story)
		}
	}
	if !l.environment.checker.Again(stories...) {
		return
	}
	planned := l.planned
	planned.Bad, planned.Again = nil, 0
	second := newLife(l.churn, planned)
	for _, s := range second.volumes {
		s.before = before[s.volume.Plan.ID]
	}
	l.churn.enter(second)
	defer l.churn.leave(second)
	second.live(ctx)
}

// find is what the containers of a pod do that comes again: what they wrote before
// has to be there. It is false if it is not, and need not be.
func (s *scratch) find() bool {
	v := s.volume.Story
	s.filled = s.before.filled
	err := content.Verify(v.Target, s.environment.spec(v), s.filled)
	switch {
	case err == nil:
		v.Note("the containers find what they wrote before")
		s.environment.checker.Published(v)
		return true
	case s.environment.checker.MayHaveGone(s.before.volume.Story):
		return false
	}
	s.environment.findings.Add(history.Durable, v, "it was retained and is published again, but: "+err.Error())
	s.filled = content.Filled{}
	return true
}
