package report

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

// Progress shows how far the run is, as bars on a terminal and as lines now
// and then elsewhere, until the returned function is called.
func (r *Run) Progress(out io.Writer) (stop func()) {
	show, interval, finish := lines(out), lineInterval, func() {}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		interval = barInterval
		show, finish = bars(file)
	}
	var speed speedometer
	tick := func() {
		now := r.standing()
		speed.measure(&now)
		show(now)
	}
	tick()
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tick()
			case <-done:
				tick()
				return
			}
		}
	})
	return func() {
		close(done)
		ticking.Wait()
		finish()
	}
}

// lines prints the progress as plain text.
func lines(out io.Writer) func(standing) {
	return func(s standing) {
		fmt.Fprintf(out, "%8s  %d of %d pods over, %d of %d volumes gone; %s\n          %s; %s\n",
			s.since.Round(time.Second), s.pods, s.ofPods, s.gone, s.volumes, s.faultText(), s.speedText(), s.nodeText())
	}
}

// bars shows the progress as two bars, below three lines of text.
func bars(out io.Writer) (show func(standing), finish func()) {
	w := progress.NewWriter()
	w.SetOutputWriter(out)
	w.SetUpdateFrequency(barInterval)
	w.SetTrackerLength(30)
	w.SetTrackerPosition(progress.PositionRight)
	w.SetMessageLength(22)
	w.Style().Visibility.ETA = false
	pods := &progress.Tracker{Message: "pods over", AutoStopDisabled: true}
	volumes := &progress.Tracker{Message: "volumes gone", AutoStopDisabled: true}
	w.AppendTrackers([]*progress.Tracker{pods, volumes})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Render()
	}()
	show = func(s standing) {
		w.SetPinnedMessages(s.speedText(), s.nodeText(), s.faultText())
		// A bar whose total is 0 would move on its own.
		pods.UpdateTotal(int64(max(s.ofPods, 1)))
		pods.SetValue(int64(s.pods))
		// How many volumes there will be shows only as they come.
		volumes.UpdateTotal(int64(max(s.volumes, 1)))
		volumes.SetValue(int64(s.gone))
	}
	finish = func() {
		pods.MarkAsDone()
		volumes.MarkAsDone()
		for {
			// It does nothing if the rendering has not begun yet.
			w.Stop()
			select {
			case <-ended:
				return
			case <-time.After(barInterval):
			}
		}
	}
	return show, finish
}
