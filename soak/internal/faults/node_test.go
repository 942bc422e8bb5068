package faults

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

// rehearsal is a node to which nothing happens, and which notes what would.
type rehearsal struct {
	began time.Time
	mu    sync.Mutex
	lines []string
	err   error
}

func (r *rehearsal) node() *Node {
	lasts := func(what string) func(context.Context, time.Duration) error {
		return func(ctx context.Context, d time.Duration) error {
			r.note("%s", what)
			defer r.note("%s over", what)
			return errors.Join(r.err, pause.For(ctx, d))
		}
	}
	fills := func(what string) func(context.Context, workload.PlannedFault) error {
		return func(ctx context.Context, f workload.PlannedFault) error { return lasts(what)(ctx, f.For) }
	}
	return &Node{
		Timeline:       &history.Timeline{},
		KillDriver:     lasts("kill"),
		RestartKubelet: lasts("restart"),
		FillDisk:       fills("fill"),
		FillInodes:     fills("inodes"),
		StallDisk:      lasts("stall"),
		StepClock:      func(by time.Duration) { r.note("step %s", by) },
	}
}

func (r *rehearsal) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%v ", time.Since(r.began))+fmt.Sprintf(format, args...))
}

func TestFaultsComeWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rehearsal{began: time.Now()}
		n := r.node()
		over := make(chan int, 10)
		go func() {
			for pods := 1; pods <= 3; pods++ {
				time.Sleep(10 * time.Second)
				over <- pods
			}
		}()
		err := n.Run(t.Context(), []workload.PlannedFault{
			{Kind: workload.ClockStep, Step: time.Hour},
			{Kind: workload.DaemonKill, Pods: 1, Delay: time.Second, For: 5 * time.Second},
			{Kind: workload.DaemonKill, Pods: 1, Delay: 2 * time.Second, For: time.Second},
			{Kind: workload.SlowDisk, Pods: 1, Delay: 3 * time.Second, For: 20 * time.Second},
			{Kind: workload.KubeletRestart, Pods: 2, For: time.Second},
			{Kind: workload.DiskFull, Pods: 2, Delay: time.Second, For: time.Second},
			{Kind: workload.NoInodes, Pods: 3, Delay: 10 * time.Second, For: time.Second},
			{Kind: workload.ClockStep, Pods: 3, Delay: 12 * time.Second, Step: -time.Hour},
		}, over)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"0s step 1h0m0s",
			"11s kill", "13s stall", "16s kill over",
			"16s kill", "17s kill over", // the driver cannot be killed twice at a time
			"20s restart", "21s restart over",
			"33s stall over", "33s fill", "34s fill over", // one thing at a time is wrong with the disk
			"40s inodes", "41s inodes over",
			"46s step -1h0m0s", // what a full disk makes go early is over
		}
		if !reflect.DeepEqual(r.lines, want) {
			t.Errorf("got  %q\nwant %q", r.lines, want)
		}
		var spans []string
		for _, s := range n.Timeline.Spans() {
			spans = append(spans, fmt.Sprintf("%s %s %s", s.Kind, s.From.Sub(r.began), s.To.Sub(r.began)))
		}
		wantSpans := []string{
			"clock-step 0s 0s", "daemon-kill 11s 16s", "slow-disk 13s 33s", "daemon-kill 16s 17s", "kubelet-restart 20s 21s", "clock-step 46s 46s",
		}
		if !reflect.DeepEqual(spans, wantSpans) {
			t.Errorf("timeline %q\nwant     %q", spans, wantSpans)
		}
	})
}

func TestFaultThatCannotBeDoneEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rehearsal{began: time.Now(), err: errors.New("no")}
		err := r.node().Run(t.Context(), []workload.PlannedFault{
			{Kind: workload.DaemonKill, Number: 1, For: time.Second},
			{Kind: workload.SlowDisk, Number: 1, Delay: time.Hour, For: time.Second},
			{Kind: workload.KubeletRestart, Pods: 1},
		}, nil)
		if err == nil || !strings.Contains(err.Error(), "fault daemon-kill, number 1: no") {
			t.Errorf("error %v, want that of the kill", err)
		}
		if took := time.Since(r.began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestFaultOfAVolumeIsNoneOfTheNode(t *testing.T) {
	r := &rehearsal{}
	if err := r.node().Run(t.Context(), []workload.PlannedFault{{Kind: workload.BusyTarget}}, nil); err == nil {
		t.Error("no error")
	}
}

func TestFaultsEndWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rehearsal{began: time.Now()}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		n := r.node()
		err := n.Run(ctx, []workload.PlannedFault{
			{Kind: workload.DaemonKill, For: time.Hour}, {Kind: workload.SlowDisk, Pods: 1},
		}, nil)
		if !errors.Is(err, stop) || time.Since(r.began) != time.Second {
			t.Errorf("%v after %s, want %v after 1s", err, time.Since(r.began), stop)
		}
		if spans := n.Timeline.Spans(); len(spans) != 1 || spans[0].To.IsZero() {
			t.Errorf("timeline %+v, want one fault that is over", spans)
		}
	})
}
