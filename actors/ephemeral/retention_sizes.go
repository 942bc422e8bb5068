package ephemeral

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// sizesDue says that more to measure has had time to come.
type sizesDue struct{}

// sizesMeasured takes sizes over.
func (s *retention) sizesMeasured(m *messages.SizesMeasured) {
	s.sizesAsked = !m.Done
	for _, size := range m.Sizes {
		s.queue.Measured(size.ID, size.Unpublished, size.Size)
	}
	if m.Done && s.queue.Unmeasured() == 0 {
		s.sizesKnown = time.Now()
	}
	s.queueChanged()
}

// sizesDue ends the wait.
func (s *retention) sizesDue() {
	s.sizesTimer = nil
	s.askSizes()
}

// askSizes asks for the sizes of the next volumes whose size is not known.
func (s *retention) askSizes() {
	unmeasured := s.queue.Unmeasured()
	if s.sizesAsked || unmeasured == 0 {
		return
	}
	if wait := collectSizes - time.Since(s.sizesKnown); wait > 0 && unmeasured < maxSizes {
		if s.sizesTimer == nil {
			s.sizesTimer = time.AfterFunc(wait, func() { s.tick(&sizesDue{}) })
		}
		return
	}
	s.sizesAsked = true
	s.measureSizes(s.nextSizes())
}

// nextSizes is about the volumes that come next: those that were retained just now, and when there
// are none, a larger number of those that the start has found.
func (s *retention) nextSizes() *messages.MeasureSizes {
	m := &messages.MeasureSizes{Volumes: make([]volume.Record, 0, maxSizes)}
	for next := range s.queue.NextUnmeasured(maxBacklogSizes) {
		backlog := next.Unpublished.Before(s.started)
		if len(m.Volumes) == 0 {
			m.Backlog = backlog
		}
		if backlog != m.Backlog || !backlog && len(m.Volumes) == maxSizes {
			break
		}
		m.Volumes = append(m.Volumes, next)
	}
	return m
}
