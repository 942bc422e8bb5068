package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Node is what the faults of the node are done to, as functions. Each returns
// when the fault is over; its error ends the run.
type Node struct {
	Timeline *history.Timeline
	// KillDriver kills the driver, and starts it again after a time.
	KillDriver func(ctx context.Context, away time.Duration) error
	// RestartKubelet lets the kubelet crash, and starts it again after a time.
	RestartKubelet func(ctx context.Context, away time.Duration) error
	// FillDisk and FillInodes let a pod use up all there is, for a time. The
	// pod's number is that of the fault; keep says that what it wrote stays in
	// its volume.
	FillDisk   func(ctx context.Context, f workload.PlannedFault) error
	FillInodes func(ctx context.Context, f workload.PlannedFault) error
	// HoldFiles lets a process have the files of all retained volumes open while a pod fills the disk.
	HoldFiles func(ctx context.Context, f workload.PlannedFault) error
	// StallDisk makes the disk slow for a time.
	StallDisk func(ctx context.Context, length time.Duration) error
	// StepClock moves the driver's wall clock.
	StepClock func(by time.Duration)

	// One driver can be killed, and one kubelet restarted, at a time; a disk is
	// full but once. Who has put something in has the turn.
	driver, kubelet, disk chan struct{}
	// full is when the disk was last full. It belongs to who has the disk's turn.
	full time.Time
}

// settled is how long after a full disk volumes may still go early.
const settled = 5 * time.Second

// Run carries the faults out, each when so many pods are over as it says; over
// gives their number, each time that it has changed. Faults of different kinds
// may go on at the same time. Run returns when the last one is over.
func (n *Node) Run(ctx context.Context, plan []workload.PlannedFault, over <-chan int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.driver, n.kubelet, n.disk = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	var running sync.WaitGroup
	defer running.Wait()
	pods := 0
	for _, f := range plan {
		for pods < f.Pods {
			select {
			case pods = <-over:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		running.Go(func() {
			if err := n.carryOut(ctx, f); err != nil {
				cancel(fmt.Errorf("fault %s, number %d: %w", f.Kind, f.Number, err))
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// carryOut does one fault, with its note in the timeline.
func (n *Node) carryOut(ctx context.Context, f workload.PlannedFault) error {
	if err := pause.For(ctx, f.Delay); err != nil {
		return err
	}
	var err error
	switch f.Kind {
	case workload.DaemonKill:
		err = n.during(ctx, n.driver, f, "", func() error { return n.KillDriver(ctx, f.For) })
	case workload.KubeletRestart:
		err = n.during(ctx, n.kubelet, f, "", func() error { return n.RestartKubelet(ctx, f.For) })
	case workload.DiskFull:
		err = n.fill(ctx, f, n.FillDisk)
	case workload.NoInodes:
		err = n.fill(ctx, f, n.FillInodes)
	case workload.OpenFiles:
		err = n.fill(ctx, f, n.HoldFiles)
	case workload.SlowDisk:
		err = n.during(ctx, n.disk, f, "", func() error { return n.StallDisk(ctx, f.For) })
	case workload.ClockStep:
		// While the disk is full volumes go early, and so they do when a driver
		// is led astray by the step: the two must not be mixed up.
		err = alone(ctx, n.disk, func() error {
			if err := pause.For(ctx, time.Until(n.full.Add(settled))); err != nil {
				return err
			}
			end := n.Timeline.BeginStep(f.Step)
			n.StepClock(f.Step)
			end()
			return pause.For(ctx, settled)
		})
	default:
		err = errors.New("it is no fault of the node")
	}
	return err
}

func (n *Node) fill(ctx context.Context, f workload.PlannedFault, fill func(context.Context, workload.PlannedFault) error) error {
	return alone(ctx, n.disk, func() error {
		defer func() { n.full = time.Now() }()
		return fill(ctx, f)
	})
}

// during notes the fault in the timeline while it is done, alone of its sort.
func (n *Node) during(ctx context.Context, turn chan struct{}, f workload.PlannedFault, what string, do func() error) error {
	return alone(ctx, turn, func() error {
		end := n.Timeline.Begin(f.Kind, what)
		defer end()
		return do()
	})
}

func alone(ctx context.Context, turn chan struct{}, do func() error) error {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-turn }()
	return do()
}
