package workload

import (
	"math"
	"slices"
	"time"
)

// Plan decides everything random of a run. Its methods are pure functions of
// the workload and the seed, and may be called by many goroutines: each pod has
// streams of random numbers of its own, so that its decisions do not depend on
// which pod was asked for first.
type Plan struct {
	workload Workload
	seed     uint64
	// bursts is when each burst of pods arrives.
	bursts []time.Duration
	// faults are those of the node, troubles those of volumes by pod index.
	faults   []PlannedFault
	troubles map[int]trouble
}

// NewPlan plans a run of a workload that passes [Workload.Check].
func NewPlan(w Workload, seed uint64) Plan {
	w.Faults = slices.Clone(w.Faults)
	p := Plan{workload: w, seed: seed}
	p.bursts = p.drawBursts()
	p.faults = p.drawFaults()
	p.troubles = p.drawTroubles()
	return p
}

// Workload is what the plan was made of.
func (p Plan) Workload() Workload {
	w := p.workload
	w.Faults = slices.Clone(w.Faults)
	return w
}

// Seed is the other thing that the plan was made of.
func (p Plan) Seed() uint64 { return p.seed }

// Faults are the faults of the node, in the order in which they begin. Those of
// volumes are found with their pods.
func (p Plan) Faults() []PlannedFault { return slices.Clone(p.faults) }

// drawBursts draws the times of a Poisson process.
func (p Plan) drawBursts() []time.Duration {
	a := p.workload.Arrival
	if a.Rate == 0 {
		return nil
	}
	r := p.stream("arrival")
	mean := float64(a.Burst) / a.Rate * float64(time.Second)
	bursts := make([]time.Duration, (p.workload.Pods+a.Burst-1)/a.Burst)
	at := 0.0
	for i := range bursts {
		at += mean * exponential(r)
		bursts[i] = toDuration(at)
	}
	return bursts
}

// arrival is when a pod arrives.
func (p Plan) arrival(index int) time.Duration {
	if p.bursts == nil {
		return 0
	}
	return p.bursts[index/p.workload.Arrival.Burst]
}

// spread is the lognormal distribution's sigma: half of the pods are shorter
// than 0.6 times the mean, one in a hundred is longer than 6 times the mean.
const spread = 1

// length is how long a pod's containers run.
func (p Plan) length(index int) time.Duration {
	if p.workload.Drain {
		return 0
	}
	l := p.workload.Length
	r := p.stream("length", uint64(index))
	mean := float64(l.Mean)
	var drawn float64
	switch l.Distribution {
	case Constant:
		drawn = mean
	case Uniform:
		drawn = 2 * mean * r.Float64()
	case Exponential:
		drawn = mean * exponential(r)
	case Lognormal:
		drawn = mean * math.Exp(spread*r.NormFloat64()-spread*spread/2.0)
	}
	length := toDuration(drawn)
	if l.Max > 0 {
		length = min(length, l.Max.D())
	}
	return length
}
