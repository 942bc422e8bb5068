package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// run measures everything and tells what came of it.
func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	s, err := newEnvironment(o, progress)
	if err != nil {
		return err
	}
	x := result{Machine: machine(s.disk), Rounds: o.rounds, Flags: o.unpinned}
	if err := s.play(ctx, &x); err != nil {
		// Without the file system, which may be large, its directory has the logs.
		return errors.Join(s.keep(err), s.disk.Close())
	}
	if err := s.tearDown(); err != nil {
		return err
	}
	x.print(out)
	if o.json != "" {
		err = errors.Join(err, x.writeJSON(o.json))
	}
	if o.readme != "" {
		err = errors.Join(err, x.writeReadme(o.readme))
	}
	return err
}

// play does all measurements, one after the other.
func (s *environment) play(ctx context.Context, x *result) error {
	for _, at := range s.options.spots() {
		p, err := s.measure(ctx, at)
		if err != nil {
			return fmt.Errorf("with %d callers, %d held and %d retained volumes, %d before: %w", at.Callers, at.Held, at.Retained, at.Peak, err)
		}
		x.Points = append(x.Points, p)
	}
	if s.options.due > 0 {
		l, err := s.measureLateness(ctx)
		if err != nil {
			return fmt.Errorf("deadlines: %w", err)
		}
		x.Lateness = &l
	}
	if s.options.burst > 0 {
		b, err := s.measureBurst(ctx)
		if err != nil {
			return fmt.Errorf("many deadlines at once: %w", err)
		}
		x.Burst = &b
	}
	return nil
}
