package report

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// notebook is a buffer for several goroutines.
type notebook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notebook) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func TestProgressInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timeline history.Timeline
		r := New(Options{
			Workload: workload.Workload{Pods: 100, Driver: workload.Driver{Headroom: 0.2}},
			Sources: Sources{
				Timeline: &timeline,
				Disk:     func() (Disk, bool) { return Disk{FreeBytes: 10, TotalBytes: 100}, true },
				Kept:     func() Kept { return Kept{Following: 7, Expired: 2, Evicted: 1} },
			},
		})
		var out notebook
		stop := r.Progress(&out)
		r.Count.PodsOver.Store(20)
		r.Count.Volumes.Store(40)
		for range 50 {
			r.Called(finished(history.Publish, time.Millisecond, nil))
		}
		r.Called(finished(history.Publish, time.Millisecond, errors.New("no")))
		timeline.Begin(workload.DiskFull, "")
		timeline.Begin(workload.DiskFull, "")
		timeline.Begin(workload.ClockStep, "")
		time.Sleep(lineInterval + time.Second)
		stop()
		text := out.String()
		for _, want := range []string{
			"      0s  0 of 100 pods over, 3 of 0 volumes gone; 0 violations\n",
			"      5s  20 of 100 pods over, 3 of 40 volumes gone; 0 violations; going on: disk-full\n",
			"; 0 pods running, 0 mounted, 7 retained, disk 10% free, pressure factor 0.50\n",
			"4.0 pods/s, 10 calls/s, 1 errors", "      6s  ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the progress lacks %q:\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 121 {
				t.Errorf("more than 120 columns: %s", line)
			}
		}
	})
}

func TestProgressInBars(t *testing.T) {
	var out bytes.Buffer
	show := bars(&out, func() int { return 70 })
	show(standing{pods: 30, ofPods: 60, errors: 77, faults: []string{"disk-full", strings.Repeat("slow-disk", 9)}})
	first := out.String()
	out.Reset()
	show(standing{pods: 70, ofPods: 60, volumes: 10, gone: 10})
	for text, want := range map[string][]string{
		first: {
			"77 errors", "going on: disk-full",
			"pods over     [####################....................]  30 of 60\n",
			"volumes gone  [........................................]  0 of 0\n",
		},
		// More than all is possible for a moment, while the numbers are asked one after another.
		out.String(): {
			"pods over     [########################################]  70 of 60\n",
			"volumes gone  [########################################]  10 of 10\n",
		},
	} {
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("the progress lacks %q:\n%s", part, text)
			}
		}
		for line := range strings.Lines(text) {
			_, shown, cleared := strings.Cut(line, "\r\x1b[K")
			if n := utf8.RuneCountInString(strings.TrimSuffix(shown, "\n")); !cleared || n > 69 {
				t.Errorf("%d columns of 70, cleared before: %t: %q", n, cleared, line)
			}
		}
	}
	if up := "\x1b[5A"; strings.Contains(first, up) || !strings.HasPrefix(out.String(), up) || strings.Count(first, "\n") != 5 {
		t.Errorf("the second does not take the place of the first:\n%q\n%q", first, &out)
	}
}

func TestSpeedIsThatOfTheLastSeconds(t *testing.T) {
	var m speedometer
	var last standing
	// Ten pods a second at first, and then none.
	for n := range 200 {
		last = standing{since: time.Duration(n) * 200 * time.Millisecond, pods: min(2*n, 200), calls: 4 * n}
		m.measure(&last)
		if n == 50 && last.podsPerSecond != 10 {
			t.Errorf("%g pods per second, want 10", last.podsPerSecond)
		}
	}
	if last.podsPerSecond != 0 || last.callsPerSecond != 20 {
		t.Errorf("%+v, want no pods and 20 calls per second", last)
	}
	if len(m) > 30 {
		t.Errorf("%d moments are remembered", len(m))
	}
}
