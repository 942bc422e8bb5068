//go:build e2e

package e2e

import (
	"os"
	"testing"
)

// TestPools installs the controller of the pools as an operator does, and runs it with the real sidecars,
// attach-detach controller and kubelet, against an array that is not real. The node's part stands in: it
// mounts nothing.
func TestPools(t *testing.T) {
	if os.Getenv("KATBOX_E2E_POOLS") == "" {
		t.Skip("the cluster is another: \"make e2e SUITE=pools\" runs this")
	}
	p := newPools(t)
	for _, scenario := range []struct {
		name string
		run  func(*poolsCluster)
	}{
		{"installed", (*poolsCluster).testInstalled},
		{"life of a volume", (*poolsCluster).testLife},
		{"in use", (*poolsCluster).testInUse},
		{"array away", (*poolsCluster).testArrayAway},
		{"states", (*poolsCluster).testStates},
		{"import", (*poolsCluster).testImport},
		{"capacity", (*poolsCluster).testCapacity},
		{"allocator", (*poolsCluster).testAllocator},
		{"steps that fail", (*poolsCluster).testStepsThatFail},
		{"finalizers", (*poolsCluster).testFinalizers},
		{"two replicas", (*poolsCluster).testReplicas},
		{"uninstall", (*poolsCluster).testUninstall},
		{"chart", (*poolsCluster).testChart},
		{"many claims", (*poolsCluster).testManyClaims},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			part := p.in(t)
			scenario.run(part)
			part.wantNothingLeft()
			part.wantAllowed()
			p.array, p.removals = part.array, part.removals
		})
	}
}
