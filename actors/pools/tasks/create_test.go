package tasks

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// TestLongNamesOfPoolsAreNoLabels: the API server would refuse the volume.
func TestLongNamesOfPoolsAreNoLabels(t *testing.T) {
	task := &task{Environment: &env.Environment{}, name: "pvc-1"}
	for pool, labels := range map[string]int{strings.Repeat("p", 63): 2, strings.Repeat("p", 64): 1} {
		v := task.wanted(pools.NewVolume{Name: "pvc-1", Required: 1, Claim: pools.Claim{Namespace: "ns", Name: "pvc-1"}},
			poolmessages.Reservation{Class: "class", Pool: pool}, v1alpha1.NFS, 1)
		if len(v.Labels) != labels || v.Labels[v1alpha1.LabelNamespace] != "ns" || v.Spec.PoolName != pool {
			t.Errorf("labels %v, pool %s", v.Labels, v.Spec.PoolName)
		}
	}
}
