package ephemeral

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// sizing is how far the sizes of the retained volumes are known.
type sizing struct {
	// began is when the daemon was started.
	began time.Time
	// asked: the sizes actor was given volumes to measure, and has not said that it is done.
	asked bool
	// done is when nothing was left to measure last.
	done time.Time
	// timer, when set, ends the wait for more to measure.
	timer *time.Timer
}

// sizesDue says that there has been time enough for more to measure to come.
type sizesDue struct{}

// measured takes sizes over.
func (s *sleepers) measured(m *messages.Surveyed) {
	s.sizing.asked = !m.Done
	for _, size := range m.Sizes {
		s.queue.Measured(size.ID, size.Unpublished, size.Size)
	}
	if m.Done && s.queue.Unmeasured() == 0 {
		s.sizing.done = time.Now()
	}
	s.tellMetrics()
}

// sizesDue ends the wait.
func (s *sleepers) sizesDue() {
	s.sizing.timer = nil
	s.goOnSizing()
}

// goOnSizing asks for the sizes of the next volumes whose size is not known.
func (s *sleepers) goOnSizing() {
	unmeasured := s.queue.Unmeasured()
	if s.sizing.asked || unmeasured == 0 {
		return
	}
	if wait := surveyCollects - time.Since(s.sizing.done); wait > 0 && unmeasured < surveyRound {
		if s.sizing.timer == nil {
			s.sizing.timer = time.AfterFunc(wait, func() { s.tick(&sizesDue{}) })
		}
		return
	}
	s.sizing.asked = true
	s.survey(s.nextSurvey())
}

// nextSurvey is about the volumes that come next: those that were retained just now, and when there
// are none, a larger number of those that the start has found.
func (s *sleepers) nextSurvey() *messages.Survey {
	m := &messages.Survey{Volumes: make([]volume.Record, 0, surveyRound)}
	for next := range s.queue.NextUnmeasured(backlogRound) {
		backlog := next.Unpublished.Before(s.sizing.began)
		if len(m.Volumes) == 0 {
			m.Backlog = backlog
		}
		if backlog != m.Backlog || !backlog && len(m.Volumes) == surveyRound {
			break
		}
		m.Volumes = append(m.Volumes, next)
	}
	return m
}
