package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// enoughCalls is how many calls a part of the run needs to be compared, if
	// nothing else is said.
	enoughCalls = 2000
	// fewCalls is how many calls an interval needs to say anything: else what
	// goes on beside them rules.
	fewCalls = 20
	// moreVolumes is how many times as many volumes there have to be.
	moreVolumes = 5
	// dearer is how many times as much a call may cost then.
	dearer = 4
	// restartCost is how long after a restart its recovery may still cost.
	restartCost = 2 * time.Second
)

// sample is what the driver had done until a moment, and what it had to keep.
type sample struct {
	at                time.Time
	calls             int
	cpu               time.Duration
	mounted, retained int
}

// Sample notes, once in a second or so, how many calls the driver has answered
// so far, how much CPU time it has used so far over all its processes, and how
// many volumes are mounted and retained.
func (c *Checker) Sample(now time.Time, calls int, cpu time.Duration, mounted, retained int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.mostVolumes = max(c.budget.mostVolumes, mounted+retained)
	c.samples = append(c.samples, sample{now, calls, cpu, mounted, retained})
}

// stretch is what was between two samples.
type stretch struct {
	calls             int
	cpu               time.Duration
	mounted, retained int
}

// stretches are what is between the samples, without what the filter takes as
// disturbed.
func stretches(samples []sample, disturbed func(from, to time.Time) bool) []stretch {
	var list []stretch
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		if b.calls-a.calls < fewCalls || b.cpu < a.cpu || disturbed(a.at, b.at) {
			continue
		}
		list = append(list, stretch{b.calls - a.calls, b.cpu - a.cpu, (a.mounted + b.mounted) / 2, (a.retained + b.retained) / 2})
	}
	return list
}

// part is some stretches together.
type part struct {
	calls       int
	cpu         time.Duration
	least, most int // volumes
}

func (p part) perCall() time.Duration { return p.cpu / time.Duration(max(1, p.calls)) }

// gather takes stretches in their order until there are enough calls, and tells
// how many it took; none if there are too few.
func gather(list []stretch, enough int, volumes func(stretch) int) (p part, taken int) {
	for i, s := range list {
		n := volumes(s)
		if i == 0 {
			p.least, p.most = n, n
		}
		p.calls, p.cpu = p.calls+s.calls, p.cpu+s.cpu
		p.least, p.most = min(p.least, n), max(p.most, n)
		if p.calls >= enough {
			return p, i + 1
		}
	}
	return part{}, 0
}

// compareCost compares the cost of calls with few volumes and with many. It
// says nothing when the run does not tell.
func compareCost(list []stretch, enough int, volumes func(stretch) int) (few, many part, ok bool) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b stretch) int { return cmp.Compare(volumes(a), volumes(b)) })
	few, n := gather(list, enough, volumes)
	slices.Reverse(list)
	many, m := gather(list, enough, volumes)
	if n == 0 || m == 0 || n+m > len(list) || many.least < moreVolumes*max(1, few.most) {
		return few, many, false
	}
	return few, many, true
}

// checkCost reports calls that cost more with more volumes.
func (c *Checker) checkCost() {
	c.mu.Lock()
	samples := c.samples
	c.mu.Unlock()
	list := stretches(samples, func(from, to time.Time) bool {
		return c.cfg.Timeline.During(from.Add(-restartCost), to, workload.DaemonKill, workload.DiskFull, workload.NoInodes)
	})
	for _, of := range []struct {
		what    string
		volumes func(stretch) int
	}{
		{"mounted", func(s stretch) int { return s.mounted }},
		{"retained", func(s stretch) int { return s.retained }},
	} {
		few, many, ok := compareCost(list, c.cfg.EnoughCalls, of.volumes)
		if !ok || many.perCall() <= dearer*few.perCall() {
			continue
		}
		c.cfg.Findings.Add(history.FlatCost, nil, fmt.Sprintf(
			"a call should cost the same, but it took %s of CPU with %d to %d volumes %s, and %s with %d to %d (%d and %d calls)",
			few.perCall(), few.least, few.most, of.what, many.perCall(), many.least, many.most, few.calls, many.calls))
	}
}
