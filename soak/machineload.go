package main

import (
	"context"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/internal/workload"
)

const (
	// loadInterval is how often the soak looks how the machine does.
	loadInterval = 250 * time.Millisecond
	// slow is how long a write of a single block may take on a machine that can be
	// asked to keep deadlines: a healthy one needs a hundredth of it.
	slow = time.Second
	// lateTimer is how late a timer may be there. A call waits for the processor
	// some dozens of times.
	lateTimer = 250 * time.Millisecond
)

// machineLoad watches how the machine does on which all this runs, and notes in the
// timeline when it is too busy: what is late then is not the driver's fault. It
// goes by the soak's own writes and timers, not by anything of the driver.
type machineLoad struct {
	timeline *history.Timeline
	write    func() error
}

// watch goes on until the run ends.
func (w machineLoad) watch(ctx context.Context) error {
	for {
		due := time.Now().Add(loadInterval)
		if pause.For(ctx, loadInterval) != nil {
			return nil
		}
		if err := w.look(due); err != nil {
			return err
		}
	}
}

// look writes once. A timer that should have come at the given time, and came
// much later, tells of processors that are too busy.
func (w machineLoad) look(due time.Time) error {
	if late := time.Since(due); late > lateTimer {
		w.timeline.Add(workload.MachineSlow, due, "a timer came "+late.Round(time.Millisecond).String()+" late")
	}
	var mu sync.Mutex
	written, end := false, func() {}
	alarm := time.AfterFunc(slow, func() {
		mu.Lock()
		defer mu.Unlock()
		// It may come at the very end of the write.
		if !written {
			end = w.timeline.Begin(workload.MachineSlow, "a write of one block took more than "+slow.String())
		}
	})
	err := w.write()
	alarm.Stop()
	mu.Lock()
	defer mu.Unlock()
	written = true
	end()
	return err
}
