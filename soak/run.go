package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/katbox/katbox/soak/internal/clock"
	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/report"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// errInterrupted ends a run because a signal came.
var errInterrupted = errors.New("interrupted, so nothing is proven")

// errTimeLimit ends a run because its time is over.
var errTimeLimit = errors.New("the run did not end in time")

// run is a whole soak: it starts the daemon, churns, checks and reports. It
// returns how many violations there were; the error says that the soak itself
// could not go on.
func run(ctx context.Context, o options, out io.Writer) (violations int, err error) {
	fmt.Fprintf(out, "seed %d\n", o.seed)
	binary, err := o.binary()
	if err != nil {
		return 0, err
	}
	files, err := report.NewOutputs(o.json, o.report, o.dir)
	if err != nil {
		return 0, err
	}
	if err := files.Open(); err != nil {
		return 0, err
	}
	defer files.Close()
	l, err := testbed.MakeLayout(o.dir, o.log)
	if err != nil {
		return 0, err
	}
	args := daemon.Flags(l, o.workload.Driver)
	if o.local {
		if o.locals, err = newLocals(l, o.seed); err != nil {
			return 0, errors.Join(err, l.Remove())
		}
		defer o.locals.controller.Close()
		args = append(args, o.locals.flags...)
	}
	if o.workload.Owned > 0 {
		if o.gateway, err = kubelet.ListenGateway(filepath.Join(l.Dir, "gateway")); err != nil {
			return 0, errors.Join(err, l.Remove())
		}
		defer o.gateway.Close()
		args = append(args, o.gateway.Flags()...)
	}
	driver := daemon.Config{Binary: binary, Args: args, Log: l.Log, Socket: l.Socket, Records: filepath.Join(l.Work, daemon.RecordsFile)}
	if hasFault(o.workload, workload.ClockStep) {
		if driver.Clock, err = clock.New(filepath.Join(l.Dir, "clock")); err != nil {
			return 0, errors.Join(err, l.Remove())
		}
		defer driver.Clock.Close()
	}
	result, err := play(ctx, o, l, daemon.New(driver), out)
	if result == nil {
		return 0, errors.Join(err, l.Remove())
	}
	result.Terminal(out)
	o.locals.report(out)
	err = errors.Join(err, files.Save(result, out))
	violations = result.Summary.Violations
	if o.keep || violations > 0 {
		fmt.Fprintf(out, "the daemon's log is %s\n", l.Log)
		return violations, err
	}
	return violations, errors.Join(err, l.Remove())
}

// play is a run on a driver, without what is around it. The result says what
// came of it, and is nil if the run could not begin.
func play(ctx context.Context, o options, l testbed.Layout, d daemon.Driver, out io.Writer) (*report.Result, error) {
	s, err := newEnvironment(o, l, d)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s: %d pods, %d at a time, in %s on %s\n",
		o.name, o.workload.Pods, o.workload.Parallel, l.Dir, s.disk.Kind())
	if hasFault(o.workload, workload.SlowDisk) && !s.disk.CanStall() {
		fmt.Fprintf(out, "without %s, which needs a loop device: %v\n", workload.SlowDisk, s.disk.Fallback())
	}

	limit := o.workload.Timeout.D()
	limited, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w, within %s; see the daemon's log, or allow more with --timeout", errTimeLimit, limit))
	defer cancel()
	stopSampling, stopProgress := s.report.StartSampling(), s.report.Progress(out)
	err = s.prove(limited)
	stopProgress()
	stopSampling()
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
	case limited.Err() != nil:
		s.findings.Add(history.Completed, nil, context.Cause(limited).Error())
		err = nil
	case errors.Is(err, errDriverDied):
		err = nil // it is among the violations
	}
	end := report.Outcome{Unproven: err, CPU: d.Total().CPU, Injected: s.injected.all()}
	if o.keep || s.findings.Sum() > 0 {
		end.Dir = l.Dir
		// What is kept is for looking at: it stays as it is until the
		// namespace goes, and the disk with it.
		return s.report.End(end), err
	}
	return s.report.End(end), errors.Join(err, s.tearDown())
}

// hasFault reports whether a workload has a fault of a kind.
func hasFault(w workload.Workload, kind workload.FaultKind) bool {
	for _, f := range w.Faults {
		if f.Kind == kind && f.Times > 0 {
			return true
		}
	}
	return false
}
