package ephemeral

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/messages"
)

// usageFunc is a usage that calls a function for each volume.
type usageFunc func()

func (g usageFunc) Usage(context.Context, volume.Place, scratch.Pace) (bytes, inodes int64, err error) {
	g()
	return 0, 0, nil
}

// TestNothingIsDoneAtIdlePriority: who erases or looks up names holds locks of the file system
// meanwhile, and a busy disk may not serve the idle class for ten seconds. Both are at the lowest
// level of the best-effort class.
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
		turn := pace.NewTurns(1, pace.NewCalls(), actors.LowPriority, func(int) {}).Take()
		if err := turn.Next(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		defer turn.End()
		check()
	})
	t.Run("sizes", func(*testing.T) {
		s := &sizes{environment: &environment{ctx: t.Context(), calls: pace.NewCalls()}, usage: usageFunc(check)}
		r := measurement{sizes: s, send: func(*messages.SizesMeasured) {}}
		r.run([]volume.Record{{Pod: testPod, ID: "csi-x"}})
	})
}
