package main

import (
	"context"

	"github.com/katbox/katbox/soak/internal/check"
)

// holds is what the driver's process has now. It is false while there is none.
func (s *environment) holds() (check.Resources, bool) {
	used, running := s.driver.Usage()
	descriptors, open := s.driver.Descriptors()
	return check.Resources{Memory: used.Anonymous, Descriptors: descriptors, Threads: used.Threads}, running && open
}

// started tells the checker what the driver has after a start. It has a pool of local volumes, and its connection to
// the controller, open from then on: they may come a moment after it is ready.
func (s *environment) started(ctx context.Context) error {
	if err := s.locals.open(ctx); err != nil {
		return err
	}
	if r, ok := s.holds(); ok {
		s.checker.Started(r)
	}
	return nil
}

// callsAtATime is how many the driver is sent at most: each one of a pod's volumes may be called for twice.
func (s *environment) callsAtATime() int {
	w := s.plan.Workload()
	return 2*w.Parallel*w.Volumes.Max + w.Reading.Readers
}

// checkAtRest compares what the driver's process has in the end with what it had after the start.
func (s *environment) checkAtRest(ctx context.Context) error {
	return s.checker.CheckAtRest(ctx, s.holds, s.callsAtATime())
}

// checkLeft compares what the driver has left on the disk with what it should have.
func (s *environment) checkLeft() error {
	records, err := s.driver.Records()
	if err != nil {
		return err
	}
	return s.checker.CheckLeft(records)
}
