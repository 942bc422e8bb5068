package fakedriver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/soak/testbed"
)

// fill takes all the room of a small disk.
func (n *node) fill() {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.cfg.Work, ".ballast"), make([]byte, 5<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		n.t.Fatalf("fill the disk: %v, want ENOSPC", err)
	}
}

func (n *node) unpublishID(id string) codes.Code {
	_, err := n.client.NodeUnpublishVolume(n.t.Context(), testbed.Unpublish(id, n.target("a")))
	return status.Code(err)
}

// TestBugsShow has the bugs that show in a single call.
func TestBugsShow(t *testing.T) {
	for _, test := range []struct {
		bug  Bug
		show func(*node) bool
	}{
		{LiesOfFailure, func(n *node) bool {
			return n.publish("a", false) == codes.Internal && mounted(n.target("a")) && n.publish("a", false) == codes.OK
		}},
		{RefusesRepeats, func(n *node) bool {
			return n.publish("a", false) == codes.OK && n.publish("a", false) == codes.AlreadyExists
		}},
		{RefusesUnknown, func(n *node) bool { return n.unpublish("a") == codes.Internal }},
		{RefusesWhenFull, func(n *node) bool {
			n.is(n.publish("a", false), codes.OK)
			n.fill()
			return n.unpublish("a") == codes.ResourceExhausted
		}},
		{NeverEvicts, func(n *node) bool {
			n.retain("a")
			n.fill()
			_ = retry.Pause(n.t.Context(), 5*n.cfg.PruneInterval)
			return exists(n.data("a"))
		}},
		{LeavesTargets, func(n *node) bool { n.retain("a"); return exists(n.target("a")) && !mounted(n.target("a")) }},
		{LeavesMounts, func(n *node) bool {
			// It leaves each for two seconds, in which a slow machine may not look.
			return slices.ContainsFunc([]string{"a", "b", "c", "d", "e"}, func(id string) bool { n.retain(id); return mounted(n.target(id)) })
		}},
		{MountsWritable, func(n *node) bool {
			n.is(n.publish("a", true), codes.OK)
			return os.WriteFile(filepath.Join(n.target("a"), "file"), nil, 0o644) == nil
		}},
		{TakesAnyID, func(n *node) bool {
			n.retain("a")
			return n.driver.disk.retained() == 1 && n.unpublishID("../../x") == codes.OK && n.unpublishID("../../../x") == codes.InvalidArgument
		}},
		{AnswersVaguely, func(n *node) bool { return n.unpublishID("../x") == codes.Internal }},
		{IgnoresUnknown, func(n *node) bool {
			return n.publishWith("a", "sizelimit", "1Gi") == codes.OK && n.publishWith("b", "sizeLimit", "none") == codes.InvalidArgument
		}},
		{CostsMore, func(n *node) bool {
			n.retain("a")
			before, _, _, _, _, _ := n.driver.Usage()
			n.is(n.unpublish("a"), codes.OK)
			after, _, _, _, _, _ := n.driver.Usage()
			return after-before == 200*time.Microsecond
		}},
		{EndsBadly, func(n *node) bool { return n.driver.Stop() != nil }},
		{LocksAll, func(n *node) bool {
			n.is(n.publish("a", false), codes.OK)
			f, err := os.Create(filepath.Join(n.target("a"), "file"))
			n.try(err)
			held, other := make(chan codes.Code, 1), make(chan codes.Code, 1)
			go func() { held <- n.unpublish("a") }()
			n.await("the lock", func() bool {
				r := n.driver.run
				if r.stuck.TryLock() {
					r.stuck.Unlock()
					return false
				}
				return true
			})
			go func() { other <- n.unpublish("b") }()
			select {
			case <-other:
				n.try(f.Close())
				return false
			case <-time.After(100 * time.Millisecond):
			}
			n.try(f.Close())
			return <-held == codes.OK && <-other == codes.OK
		}},
	} {
		t.Run("bug: "+string(test.bug), func(t *testing.T) {
			n := newNode(t, true, func(c *Config) { c.Bug, c.Headroom = test.bug, 0.1 })
			if !test.show(n) {
				t.Error("it does not show")
			}
		})
	}
}
