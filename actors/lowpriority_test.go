package actors

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// groundFunc is a ground that calls a function for each volume.
type groundFunc func()

func (g groundFunc) Usage(context.Context, volume.Place, scratch.Pace) (bytes, inodes int64, err error) {
	g()
	return 0, 0, nil
}

// TestNothingIsDoneAtIdlePriority: who erases or looks up names holds locks of the file
// system meanwhile, and a busy disk may not serve the idle class for ten seconds. Both
// are at the lowest level of the best-effort class.
func TestNothingIsDoneAtIdlePriority(t *testing.T) {
	const bestEffort, lowest = 2, 7
	check := func() {
		t.Helper()
		// 1 is a thread, 0 the one that asks.
		priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, 0, 0)
		if class, level := priority>>13, priority&7; errno != 0 || class != bestEffort || level != lowest {
			t.Errorf("I/O priority class %d, level %d, %v; want class %d, level %d", class, level, errno, bestEffort, lowest)
		}
	}
	t.Run("erase", func(t *testing.T) {
		turn := newTurns(1, newCalls(), metrics.New("", "")).take()
		if err := turn.next(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		defer turn.end()
		check()
	})
	t.Run("survey", func(*testing.T) {
		s := &surveyor{ctx: t.Context(), ground: groundFunc(check), calls: newCalls(), log: logr.Discard()}
		r := round{surveyor: s, send: func(*messages.Surveyed) {}}
		r.run([]messages.ToMeasure{{Record: volume.Record{Pod: testPod, ID: "csi-x"}}})
	})
}
