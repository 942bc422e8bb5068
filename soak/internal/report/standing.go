package report

import (
	"fmt"
	"strings"
	"time"
)

// standing is how the run stands at a moment, for who watches it.
type standing struct {
	since time.Duration // since the beginning

	pods, ofPods, running         int
	calls, errors                 int
	mounted, retained             int
	volumes, gone                 int
	podsPerSecond, callsPerSecond float64
	// disk is missing if it is not known.
	disk       *Disk
	pressure   float64
	faults     []string
	violations int
}

// standing asks how the run stands.
func (r *Run) standing() standing {
	r.asking.Lock()
	defer r.asking.Unlock()
	from := r.options.Sources
	kept := from.kept()
	s := standing{
		pods: int(r.Count.PodsOver.Load()), ofPods: r.options.Workload.Pods, running: int(r.Count.PodsRunning.Load()),
		mounted: int(r.Count.Mounted.Load()), retained: kept.Following,
		volumes: int(r.Count.Volumes.Load()), gone: kept.Expired + kept.Evicted,
		violations: from.violations(),
	}
	if d, ok := from.disk(); ok {
		s.disk, s.pressure = &d, d.pressure(r.options.Workload.Driver.Headroom)
	}
	for _, kind := range from.goingOn() {
		s.faults = append(s.faults, string(kind))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.since, s.calls, s.errors = time.Since(r.began), r.calls.answered, r.calls.errors
	return s
}

// The texts of a standing, each of which fits into 120 columns.

func (s standing) speedText() string {
	return fmt.Sprintf("%.1f pods/s, %.0f calls/s, %d errors", s.podsPerSecond, s.callsPerSecond, s.errors)
}

func (s standing) nodeText() string {
	text := fmt.Sprintf("%d pods running, %d mounted, %d retained", s.running, s.mounted, s.retained)
	if s.disk != nil {
		text += fmt.Sprintf(", disk %.0f%% free, pressure factor %.2f", 100*share(s.disk.FreeBytes, s.disk.TotalBytes), s.pressure)
	}
	return text
}

func (s standing) faultText() string {
	text := plural(s.violations, "violation")
	if len(s.faults) > 0 {
		text += "; going on: " + strings.Join(s.faults, ", ")
	}
	return text
}

// speedSpan is the time that speeds are taken over: less would jump with each
// sample, more would hide a standstill.
const speedSpan = 5 * time.Second

// speedometer knows how many pods and calls there were in the last seconds.
type speedometer []standing

// measure fills the speeds in.
func (m *speedometer) measure(s *standing) {
	for len(*m) > 1 && s.since-(*m)[1].since >= speedSpan {
		*m = (*m)[1:]
	}
	if len(*m) > 0 {
		if span := s.since - (*m)[0].since; span > 0 {
			s.podsPerSecond = float64(s.pods-(*m)[0].pods) / span.Seconds()
			s.callsPerSecond = float64(s.calls-(*m)[0].calls) / span.Seconds()
		}
	}
	*m = append(*m, *s)
}
