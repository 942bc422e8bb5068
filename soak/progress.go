package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"
)

const (
	// barInterval is how often a bar moves, lineInterval how often there is a
	// line where there cannot be a bar.
	barInterval  = 200 * time.Millisecond
	lineInterval = 5 * time.Second
)

// startProgress shows how far the run is, as bars on a terminal and as a line
// now and then elsewhere, until the returned function is called.
func startProgress(out io.Writer, o options, s *stats, f *findings) (stop func()) {
	show, interval, finish := lines(out, o), lineInterval, func() {}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		interval = barInterval
		show, finish = bars(file, o)
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				show(s.totals(), f.sum())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		ticking.Wait()
		show(s.totals(), f.sum())
		finish()
	}
}

// lines prints the progress as plain text.
func lines(out io.Writer, o options) func(totals, int) {
	began := time.Now()
	return func(t totals, violations int) {
		fmt.Fprintf(out, "%5.0fs  %d of %d pods over, %d of %d volumes expired, %d calls, %d errors, %d violations\n",
			time.Since(began).Seconds(), t.pods, o.pods, t.expired, o.pods*o.volumes, t.calls, t.errors, violations)
	}
}

// bars shows the progress as two bars.
func bars(out io.Writer, o options) (show func(totals, int), finish func()) {
	w := progress.NewWriter()
	w.SetOutputWriter(out)
	w.SetUpdateFrequency(barInterval)
	w.SetTrackerLength(30)
	w.SetTrackerPosition(progress.PositionRight)
	w.SetMessageLength(44)
	w.Style().Visibility.ETA = false
	pods := &progress.Tracker{Message: "pods", Total: int64(o.pods), AutoStopDisabled: true}
	volumes := &progress.Tracker{Message: "volumes expired", Total: int64(o.pods * o.volumes), AutoStopDisabled: true}
	w.AppendTrackers([]*progress.Tracker{pods, volumes})
	var rendering sync.WaitGroup
	rendering.Go(w.Render)
	show = func(t totals, violations int) {
		pods.SetValue(int64(t.pods))
		pods.UpdateMessage(fmt.Sprintf("pods; %d calls, %d errors", t.calls, t.errors))
		volumes.SetValue(int64(t.expired))
		volumes.UpdateMessage(fmt.Sprintf("volumes expired; %d violations", violations))
	}
	finish = func() {
		pods.MarkAsDone()
		volumes.MarkAsDone()
		w.Stop()
		rendering.Wait()
	}
	return show, finish
}
