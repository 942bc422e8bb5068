package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// TestReach: the log says once that no node is connected, and once that this is over. Nodes that come back in time, and
// a cluster without daemons, are not worth a line.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expected, connected atomic.Int64
		var said []string
		r := &reach{count: func() (int, int) { return int(expected.Load()), int(connected.Load()) }, log: funcr.New(func(_, line string) {
			said = append(said, line)
		}, funcr.Options{})}
		ctx, cancel := context.WithCancel(t.Context())
		go r.run(ctx)
		want := func(when string, parts ...string) {
			t.Helper()
			if !slices.EqualFunc(said, parts, strings.Contains) {
				t.Errorf("%s: the log says %q, want %q", when, said, parts)
			}
			said = nil
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		pass(time.Second) // from here on a change and a look are never at the same time
		const long = 10 * time.Minute
		pass(long)
		want("an empty cluster")
		expected.Store(3)
		pass(settleTime - time.Second)
		want("daemons have just started")
		connected.Store(1)
		pass(long)
		want("one node is enough")
		connected.Store(0)
		pass(settleTime - time.Second)
		connected.Store(3)
		pass(long)
		want("all came back in time")
		connected.Store(0)
		pass(long)
		want("none is connected", "no node is connected")
		connected.Store(2)
		pass(long)
		want("some are again", "nodes are connected again")
		connected.Store(0)
		pass(long)
		expected.Store(0)
		pass(long)
		want("the daemons are removed", "no node is connected", "nodes are connected again, or none has a daemon")
		cancel()
	})
}
