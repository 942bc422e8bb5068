//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"
)

// TestLocal installs pools on the disks of three nodes, as an operator does, and uses them while nodes and programs go
// and come back. "make e2e SUITE=local" runs it.
func TestLocal(t *testing.T) {
	if os.Getenv("KATBOX_E2E_LOCAL") == "" {
		t.Skip("the cluster is another: \"make e2e SUITE=local\" runs this")
	}
	began := time.Now()
	l := newLocalCluster(t)
	report("installed", "%.0f s", time.Since(began).Seconds())
	for _, scenario := range []struct {
		name string
		run  func(*localCluster)
	}{
		{"installed", (*localCluster).testInstalled},
		{"where there is room", (*localCluster).testRoom},
		{"the most room", (*localCluster).testMostRoom},
		{"the same room", (*localCluster).testSameRoom},
		{"comes back", (*localCluster).testComesBack},
		{"grows", (*localCluster).testGrows},
		{"node lost", (*localCluster).testNodeLost},
		{"registered again", (*localCluster).testRegisteredAgain},
		{"waits for the driver", (*localCluster).testWaitsForDriver},
		{"drained", (*localCluster).testDrained},
		{"disk full", (*localCluster).testDiskFull},
		{"disk away", (*localCluster).testDiskAway},
		{"disk moved", (*localCluster).testDiskMoved},
		{"uninstall", (*localCluster).testUninstalled},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			began := time.Now()
			part := l.in(t)
			defer func() {
				report(scenario.name, "%.0f s", time.Since(began).Seconds())
				l.removals = part.removals // though it has failed
			}()
			part.clear()
			scenario.run(part)
			part.wantNothingLeft()
			part.wantAllowed()
		})
	}
}
