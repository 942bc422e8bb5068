package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// errInterrupted ends a run because a signal came.
var errInterrupted = errors.New("interrupted, so nothing is proven")

// errTimeLimit ends a run because --timeout is over.
var errTimeLimit = errors.New("the run did not end in time")

// errDaemonDied ends a run because there is nobody to talk to any more.
var errDaemonDied = errors.New("the daemon died")

// run is a whole soak: it starts the daemon, churns, checks and reports. It
// returns how many violations there were; the error says that the soak itself
// could not go on.
func run(ctx context.Context, o options, out io.Writer) (violations int, err error) {
	fmt.Fprintf(out, "seed %d\n", o.seed)
	binary, err := o.binary()
	if err != nil {
		return 0, err
	}
	files := o.outputs()
	if err := files.open(); err != nil {
		return 0, err
	}
	defer files.close()
	l, err := makeLayout(o)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%d pods with %d volumes each, %d at a time, in %s\n", o.pods, o.volumes, o.parallel, l.dir)

	s, f := newStats(), &findings{}
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout,
		fmt.Errorf("%w, within %s; see the daemon's log, or allow more with --timeout", errTimeLimit, o.timeout))
	defer cancel()
	err = proveWithDaemon(limited, o, l, binary, s, f, out)
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
	case limited.Err() != nil:
		f.add(unfinished, nil, context.Cause(limited).Error())
		err = nil
	case errors.Is(err, errDaemonDied):
		err = nil // it is among the violations
	}
	x := outcome{options: o, stats: s, findings: f, took: time.Since(s.began), err: err}
	if o.keep || f.sum() > 0 {
		x.kept = l.dir
	}
	report(out, o, s, f, x.took)
	return f.sum(), errors.Join(err, files.save(x, out), tidy(x.kept, l, out))
}

// proveWithDaemon runs the daemon around the churn and the checks.
func proveWithDaemon(
	ctx context.Context, o options, l layout, binary string, s *stats, f *findings, out io.Writer,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	broken := func(err error) error {
		f.add(brokenDaemon, nil, err.Error())
		return errDaemonDied
	}
	d := newDaemon(binary, l, o.lifespan, func(err error) { cancel(broken(err)) })
	stopSampling := startSampling(d, l.work, s, f)
	defer func() {
		d.abandon()
		stopSampling()
		s.update(func(s *stats) { s.consumed, s.marks = d.used.total(), d.marks(s.began) })
	}()
	if err := d.start(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return broken(err)
	}
	kill := func(ctx context.Context) error {
		if err := d.kill(ctx); err != nil && ctx.Err() == nil {
			cancel(broken(err))
		}
		return context.Cause(ctx)
	}
	k := &kubelet{layout: l, stats: s, findings: f, down: d.down, firstWait: o.firstWait}

	stopProgress := startProgress(out, o, s, f)
	err := prove(ctx, o, k, kill)
	stopProgress()
	if err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return broken(err)
	}
	return checkMounts("after the daemon's end", f, l.kubelet, l.work)
}

// prove churns and checks against a daemon that is ready. It returns an error
// if it could not come to its end, not for violations.
func prove(ctx context.Context, o options, k *kubelet, kill func(context.Context) error) error {
	p := plan{options: o}
	w := &watch{lifespan: o.lifespan, tolerance: o.tolerance, stats: k.stats, findings: k.findings}
	c := newChurn(p, k, w)

	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	background.Go(func() { w.run(ctx) })
	killed := make(chan error, 1)
	background.Go(func() {
		err := carryOutKills(ctx, p.kills(), c.over, k.stats, kill)
		if err != nil {
			cancel(err)
		}
		killed <- err
	})
	c.run(ctx)
	if err := <-killed; err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	churned := time.Now()
	w.pass(o.lifespan) // however far away their deadlines are
	if err := checkMounts("after the churn", k.findings, k.layout.kubelet, k.layout.work); err != nil {
		return err
	}
	w.close()
	background.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return awaitEmpty(ctx, k.layout.work, churned.Add(o.lifespan+o.tolerance), k.findings)
}

// tidy removes what the run made, or says where it is.
func tidy(kept string, l layout, out io.Writer) error {
	if kept != "" {
		fmt.Fprintf(out, "everything is kept in %s, the daemon's log in %s\n", l.dir, l.log)
		return nil
	}
	// After an interruption there may be mounts. They vanish with the
	// namespace, but in here they would keep the directories from going.
	mounts, err := leakedMounts(l.dir)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("clean up: unmount %s: %w; remove %s yourself", mount, err, l.dir)
		}
	}
	return l.remove()
}
