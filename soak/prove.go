package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/daemon"
	"github.com/katbox/katbox/soak/internal/faults"
	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/misuse"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// errDriverDied ends a run because no driver answers any more.
var errDriverDied = errors.New("the driver died")

// costInterval is how often the driver's CPU time is compared with its work.
const costInterval = time.Second

// prove lets the driver live through the churn, and checks what it leaves. It
// returns an error if it could not come to its end, not for violations.
func (s *environment) prove(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Whatever ends the run, nothing of the driver or the kubelet outlives it.
	defer s.driver.Kill()
	if s.plan.Workload().Volumes.OnFailure > 0 {
		podsAPI, err := kubelet.StartPodsAPI(s.layout.Kubelet, daemon.Name)
		if err != nil {
			return err
		}
		defer podsAPI.Stop()
		s.podsAPI = podsAPI
	}
	if err := s.driver.Start(ctx); err != nil {
		return s.died(ctx, err)
	}
	if err := s.started(ctx); err != nil {
		return err
	}
	background.Go(func() {
		select {
		case err := <-s.driver.Died():
			cancel(s.died(ctx, err))
		case <-ctx.Done():
		}
	})
	background.Go(func() { s.checker.Run(ctx) })
	background.Go(func() { s.measureCost(ctx) })
	stopWeather := s.startWeather(ctx, cancel)
	defer stopWeather()

	// Its own mounts are there by now, so that they are not taken for what a bad
	// call made.
	site, err := misuse.NewSite(s.layout.Kubelet, s.layout.Work)
	if err != nil {
		return err
	}
	n := &node{}
	c := newChurn(s, n, site)
	n.config = kubelet.Config{
		Root: s.layout.Kubelet, Socket: s.layout.Socket, Driver: daemon.Name, Node: testbed.Node,
		API: s.api, Listener: c, Mounted: host.MountedAt,
	}
	if s.plan.Workload().Volumes.Persistent > 0 {
		attachments, err := kubelet.StartAttachments(kubelet.AttachmentsConfig{Socket: s.layout.Socket, API: s.api, Listener: c})
		if err != nil {
			return err
		}
		defer attachments.Stop()
	}
	if err := n.start(); err != nil {
		return err
	}
	defer n.crash()
	stopReaders := s.startReaders(ctx)
	defer stopReaders()
	if err := s.churn(ctx, cancel, c); err != nil {
		return err
	}
	if err := site.Close(); err != nil {
		s.findings.Add(history.BadInput, nil, err.Error())
	}
	if err := s.locals.audit(ctx, s.findings); err != nil {
		return err
	}
	if err := s.checker.Finish(ctx); err != nil {
		return err
	}
	if s.reader != nil {
		if err := s.reader.CheckGone(ctx); err != nil {
			return err
		}
	}
	stopReaders()
	n.crash()
	stopWeather() // its file is in the driver's working directory
	if err := s.checkAtRest(ctx); err != nil {
		return err
	}
	if err := s.driver.Stop(); err != nil {
		return s.died(ctx, err)
	}
	return errors.Join(s.checkMounts(), s.checkLeft())
}

// churn returns when all pods and all faults are over.
func (s *environment) churn(ctx context.Context, cancel context.CancelCauseFunc, c *churn) error {
	breaker := &faults.Node{
		Timeline:       s.timeline,
		KillDriver:     func(ctx context.Context, away time.Duration) error { return s.killDriver(ctx, away, cancel) },
		RestartKubelet: c.node.restart,
		FillDisk: func(ctx context.Context, f workload.PlannedFault) error {
			return c.fillDisk(ctx, f, content.FillDisk)
		},
		FillInodes: func(ctx context.Context, f workload.PlannedFault) error {
			return c.fillDisk(ctx, f, content.FillInodes)
		},
		HoldFiles: c.holdFiles,
		StallDisk: s.stallDisk,
		StepClock: s.stepClock(),
	}
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		if err := breaker.Run(ctx, s.possible(), c.over); err != nil {
			cancel(err)
		}
	}()
	c.run(ctx)
	<-broken
	c.afterlives.Wait()
	return context.Cause(ctx)
}

// possible are the faults of the node that can be had on this environment. A slow disk
// needs a device of its own.
func (s *environment) possible() []workload.PlannedFault {
	return slices.DeleteFunc(s.plan.Faults(), func(f workload.PlannedFault) bool {
		return f.Kind == workload.SlowDisk && !s.disk.CanStall()
	})
}

// killDriver is a crash of the driver and a start so much later.
func (s *environment) killDriver(ctx context.Context, away time.Duration, cancel context.CancelCauseFunc) error {
	if r, ok := s.holds(); ok {
		s.checker.CheckMemory(r, s.callsAtATime())
	}
	s.driver.Kill()
	if err := pause.For(ctx, away); err != nil {
		return err
	}
	if err := s.driver.Start(ctx); err != nil {
		err = s.died(ctx, fmt.Errorf("start after a kill: %w", err))
		cancel(err)
		return err
	}
	s.checker.DaemonReady()
	return s.started(ctx)
}

const (
	// A slow disk stands still for stillness, and works for respite, in turn.
	stillness = 400 * time.Millisecond
	respite   = 50 * time.Millisecond
)

func (s *environment) stallDisk(ctx context.Context, length time.Duration) error {
	return s.disk.Stall(ctx, length, stillness, respite)
}

// stepClock steps the driver's wall clock further each time.
func (s *environment) stepClock() func(time.Duration) {
	var offset time.Duration
	return func(by time.Duration) {
		offset += by
		s.driver.SetClock(offset)
	}
}

// died reports that the driver did not start, live or end as it should, and
// returns what ends the run. The end of the run itself is no news.
func (s *environment) died(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.findings.Add(history.Lives, nil, err.Error())
	return errDriverDied
}

// measureCost tells the checker now and then what the driver's work costs.
func (s *environment) measureCost(ctx context.Context) {
	for pause.For(ctx, costInterval) == nil {
		u, ok := s.driver.Usage()
		if ok {
			s.checker.Sample(time.Now(), int(s.calls.Load()), u.CPU, int(s.report.Count.Mounted.Load()), s.checker.Counts().Following)
		}
	}
}

// startWeather notes when the machine is too busy, until the returned function is
// called.
func (s *environment) startWeather(ctx context.Context, broken context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		probe, err := s.disk.NewProbe()
		if err == nil {
			err = errors.Join(machineLoad{timeline: s.timeline, write: probe.Write}.watch(ctx), probe.Close())
		}
		if err != nil {
			broken(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// startReaders lets people read until the returned function is called.
func (s *environment) startReaders(ctx context.Context) (stop func()) {
	if s.reader == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.reader.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// checkMounts reports what is still mounted when the driver is gone.
func (s *environment) checkMounts() error {
	for _, dir := range []string{s.layout.Kubelet, s.layout.Work} {
		mounts, err := host.MountsBelow(dir)
		if err != nil {
			return err
		}
		for _, m := range mounts {
			s.findings.Add(history.NoLeak, nil, fmt.Sprintf("after the driver's end %s is still mounted", m.Point))
		}
	}
	return nil
}
