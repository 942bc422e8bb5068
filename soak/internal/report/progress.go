package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// barInterval is how often a bar moves, lineInterval how often there is a
	// line where there cannot be a bar.
	barInterval  = 200 * time.Millisecond
	lineInterval = 5 * time.Second
	barLength    = 40
)

// Progress shows how far the run is, as bars on a terminal and as lines now
// and then elsewhere, until the returned function is called.
func (r *Run) Progress(out io.Writer) (stop func()) {
	show, interval := lines(out), lineInterval
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		show, interval = bars(file, func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil || width <= 0 {
				return usualWidth
			}
			return width
		}), barInterval
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
	}
}

// lines prints the progress as plain text.
func lines(out io.Writer) func(standing) {
	return func(s standing) {
		fmt.Fprintf(out, "%8s  %d of %d pods over, %d of %d volumes gone; %s\n          %s; %s\n",
			s.since.Round(time.Second), s.pods, s.ofPods, s.gone, s.volumes, s.faultText(), s.speedText(), s.nodeText())
	}
}

// usualWidth is that of a terminal that does not say its own.
const usualWidth = 80

// bars shows the progress as two bars below three lines of text. Each call writes over the one
// before. No line is as wide as the terminal, which would continue it in a line that nothing clears.
func bars(out io.Writer, width func() int) func(standing) {
	up := ""
	return func(s standing) {
		text := []string{
			s.speedText(), s.nodeText(), s.faultText(),
			// How many volumes there will be shows only as they come.
			bar("pods over", s.pods, s.ofPods), bar("volumes gone", s.gone, s.volumes),
		}
		var b strings.Builder
		b.WriteString(up)
		for _, line := range text {
			letters := []rune(line)
			fmt.Fprintf(&b, "\r\x1b[K%s\n", string(letters[:min(len(letters), width()-1)]))
		}
		up = fmt.Sprintf("\x1b[%dA", len(text))
		_, _ = io.WriteString(out, b.String()) // a terminal that has gone needs nothing
	}
}

// bar is a share of a whole as a line.
func bar(name string, part, whole int) string {
	full := barLength * min(part, whole) / max(whole, 1)
	return fmt.Sprintf("%-12s  [%s%s]  %d of %d", name, strings.Repeat("#", full), strings.Repeat(".", barLength-full), part, whole)
}
