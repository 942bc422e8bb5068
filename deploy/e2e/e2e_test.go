//go:build e2e

package e2e

import (
	"os"
	"testing"
)

// TestInACluster installs Katbox as an operator does, and runs the scenarios.
func TestInACluster(t *testing.T) {
	if os.Getenv("KATBOX_E2E_DISK") != "" {
		t.Skip("the node has a small disk of its own: \"make e2e SUITE=node\" runs this")
	}
	if os.Getenv("KATBOX_E2E_GATEWAY") != "" || os.Getenv("KATBOX_E2E_POOLS") != "" || os.Getenv("KATBOX_E2E_CHART") != "" {
		t.Skip("the cluster is another: \"make e2e SUITE=node\" runs this")
	}
	c := newCluster(t)
	c.deploy()
	c.wantMetric("katbox_registered", 1)
	// With a fuller disk volumes would go early.
	c.wantMetric("katbox_pressure_ratio", 1)
	if _, err := c.fetch("/healthz"); err != nil {
		t.Error(err)
	}
	for _, scenario := range []struct {
		name string
		run  func(*cluster)
	}{
		{"uses", (*cluster).testUses},
		{"reading", (*cluster).testReading},
		{"outcomes", (*cluster).testOutcomes},
		{"churn", (*cluster).testChurn},
		{"restarts", (*cluster).testRestarts},
		{"remove", (*cluster).testRemove},
		{"upgrade", (*cluster).testUpgrade},
		{"idle", (*cluster).testMeasure},
	} {
		t.Run(scenario.name, func(t *testing.T) { scenario.run(c.in(t)) })
	}
}
