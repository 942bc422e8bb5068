package pools

import (
	"fmt"
	"testing"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// TestPoolOfARealAnswer: the states of a pool whose array answers as a VPSA does, over HTTP.
func TestPoolOfARealAnswer(t *testing.T) {
	for _, tc := range []struct {
		name      string
		options   fakevpsa.Options
		fault     *fakevpsa.Fault
		want      v1alpha1.PoolState
		condition string
		reason    string
	}{
		{name: "ready", want: v1alpha1.PoolReady, condition: v1alpha1.ConditionReady, reason: "Ready"},
		{name: "numbers as strings", options: fakevpsa.Options{Settings: fakevpsa.Settings{Strings: true}}, want: v1alpha1.PoolReady},
		{name: "old", options: fakevpsa.Options{Settings: fakevpsa.Settings{Version: "20.01"}}, want: v1alpha1.PoolIncompatible,
			condition: v1alpha1.ConditionCompatible, reason: "VersionTooOld"},
		{name: "two pools", options: fakevpsa.Options{Pools: []fakevpsa.Pool{{Name: "a", Capacity: 100}, {Name: "b", Capacity: 100}}},
			want: v1alpha1.PoolIncompatible, condition: v1alpha1.ConditionCompatible, reason: "SeveralPools"},
		{name: "bad token", options: fakevpsa.Options{Settings: fakevpsa.Settings{Token: "another"}}, want: v1alpha1.PoolUnreachable,
			condition: v1alpha1.ConditionReachable, reason: "InvalidCredentials"},
		{name: "html", fault: &fakevpsa.Fault{Kind: fakevpsa.HTML}, want: v1alpha1.PoolUnreachable,
			condition: v1alpha1.ConditionReachable, reason: "BadAnswer"},
		{name: "starting", fault: &fakevpsa.Fault{Kind: fakevpsa.HTTP, Status: 503, Text: "starting"}, want: v1alpha1.PoolUnreachable,
			condition: v1alpha1.ConditionReachable, reason: "BadAnswer"},
		{name: "hangs", fault: &fakevpsa.Fault{Kind: fakevpsa.Hang}, want: v1alpha1.PoolUnreachable,
			condition: v1alpha1.ConditionReachable, reason: "Timeout"},
		{name: "nearly full", options: fakevpsa.Options{Pools: []fakevpsa.Pool{{Name: "a", Capacity: 100, Mode: "alert"}}},
			want:      v1alpha1.PoolReady,
			condition: v1alpha1.ConditionCapacityHealthy, reason: "ModeAlert"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inPools(t, func(h *testPools) {
				a := h.addFake("a", "fast", tc.options)
				if tc.fault != nil {
					if _, err := a.Fail(*tc.fault); err != nil {
						h.Fatal(err)
					}
				}
			}, func(h *testPools) {
				h.pass(2 * probeBound)
				h.wantState("a", tc.want, tc.condition, tc.reason)
			})
		})
	}
}

// TestLostResourcesAreFoundAmongManyVolumes, in several pages: those of strangers and three of ours.
func TestLostResourcesAreFoundAmongManyVolumes(t *testing.T) {
	inPools(t, func(h *testPools) {
		a := h.addFake("a", "fast", fakevpsa.Options{})
		if err := a.Seed("stranger", 2_500, 1, true); err != nil {
			h.Fatal(err)
		}
		for i := range 3 {
			v := fakevpsa.Volume{Name: fmt.Sprint("pvc-", i), Size: 5, Comment: pools.NewComment(testCluster, pools.Claim{}).String()}
			added, err := a.AddVolume(v)
			if err != nil {
				h.Fatal(err)
			}
			if _, err := a.AddSnapshot(added.ID, fmt.Sprintf("snapshot-00000000-0000-4000-8000-%012d", i)); err != nil {
				h.Fatal(err)
			}
		}
	}, func(h *testPools) {
		h.pass(2 * testInterval)
		h.wantState("a", v1alpha1.PoolReady, "", "")
		if c := h.pool("a").Status.Counters; c != (v1alpha1.PoolCounters{Volumes: 3, Snapshots: 3}) {
			h.Errorf("the pool has %+v", c)
		}
		for i := range 3 {
			if v := get[v1alpha1.PoolVolume](h, fmt.Sprint("pvc-", i)); v.Spec.Management != v1alpha1.Managed || v.Status.ExportPath == "" {
				h.Errorf("imported as %+v", v)
			}
		}
		for _, c := range h.fakes["https://a"].Changes("") {
			h.Errorf("the import has changed the array: %+v", c)
		}
	})
}
