//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"
)

// TestArray installs all that an array's volumes need on a node, and uses them: NFS and iSCSI of the kernel,
// which the array's data plane serves, too. "make e2e SUITE=array" runs it in a virtual machine.
func TestArray(t *testing.T) {
	if os.Getenv("KATBOX_E2E_ARRAY") == "" {
		t.Skip("the node is another: \"make e2e SUITE=array\" runs this")
	}
	began := time.Now()
	a := newArrayCluster(t)
	report("installed", "%.0f s", time.Since(began).Seconds())
	for _, scenario := range []struct {
		name string
		run  func(*arrayCluster)
	}{
		{"StatefulSets", (*arrayCluster).testStatefulSets},
		{"throughout", (*arrayCluster).testThroughout},
		{"copies", (*arrayCluster).testCopies},
		{"taken over", (*arrayCluster).testTakenOver},
		{"access modes", (*arrayCluster).testAccessModes},
		{"stopped waiting", (*arrayCluster).testStoppedWaiting},
		{"crash points", (*arrayCluster).testCrashPoints},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			began := time.Now()
			part := a.in(t)
			defer func() {
				report(scenario.name, "%.0f s", time.Since(began).Seconds())
				a.array, a.removals = part.array, part.removals // though it has failed
			}()
			part.clear()
			scenario.run(part)
			part.wantNothingLeft()
			part.wantNothingOnNode()
			part.wantAllowed()
		})
	}
}
