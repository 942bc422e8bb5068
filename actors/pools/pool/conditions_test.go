package pool

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// TestStateOfAPoolFollowsFromItsConditions: the first row that fits decides, for every combination.
func TestStateOfAPoolFollowsFromItsConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionStatus("")
	all := []metav1.ConditionStatus{yes, no, unknown}
	either := all
	not, perhaps := []metav1.ConditionStatus{no, unknown}, []metav1.ConditionStatus{yes, unknown}
	rows := []struct {
		reachable, compatible, configured, imported, healthy, capacity []metav1.ConditionStatus
		want                                                           v1alpha1.PoolState
		usable                                                         bool
	}{
		{only1(no), either, either, either, either, either, v1alpha1.PoolUnreachable, false},
		{only1(unknown), either, either, either, either, either, v1alpha1.PoolConfiguring, false},
		{only1(yes), only1(no), either, either, either, either, v1alpha1.PoolIncompatible, false},
		{only1(yes), only1(unknown), either, either, either, either, v1alpha1.PoolConfiguring, false},
		{only1(yes), only1(yes), not, either, either, either, v1alpha1.PoolConfiguring, false},
		{only1(yes), only1(yes), only1(yes), not, either, either, v1alpha1.PoolImporting, false},
		{only1(yes), only1(yes), only1(yes), only1(yes), only1(no), either, v1alpha1.PoolFailed, true},
		{only1(yes), only1(yes), only1(yes), only1(yes), perhaps, either, v1alpha1.PoolReady, true},
	}
	tested := 0
	for _, reachable := range all {
		for _, compatible := range all {
			for _, configured := range all {
				for _, imported := range all {
					for _, healthy := range all {
						for _, capacity := range all {
							v := verdicts{
								reachable: verdict{status: reachable}, compatible: verdict{status: compatible}, configured: verdict{status: configured},
								imported: verdict{status: imported}, healthy: verdict{status: healthy}, capacity: verdict{status: capacity},
							}
							fits := 0
							for _, row := range rows {
								if !slices.Contains(row.reachable, reachable) || !slices.Contains(row.compatible, compatible) ||
									!slices.Contains(row.configured, configured) || !slices.Contains(row.imported, imported) ||
									!slices.Contains(row.healthy, healthy) || !slices.Contains(row.capacity, capacity) {
									continue
								}
								fits++
								if got := v.state(false); got != row.want || v.usable() != row.usable {
									t.Errorf("%+v: %s, usable %v; want %s, %v", v, got, v.usable(), row.want, row.usable)
								}
							}
							if fits != 1 {
								t.Fatalf("%d rows fit %+v", fits, v)
							}
							if got := v.state(true); got != v1alpha1.PoolDeleting {
								t.Errorf("%+v, deleted: %s", v, got)
							}
							tested++
						}
					}
				}
			}
		}
	}
	if tested != 729 {
		t.Errorf("%d combinations tested", tested)
	}
}

func only1(s metav1.ConditionStatus) []metav1.ConditionStatus { return []metav1.ConditionStatus{s} }

func TestConditionsKeepTheirTimes(t *testing.T) {
	v := verdicts{reachable: good("Reachable"), compatible: bad("SeveralPools", "it has two")}
	first := v.conditions(nil, 1, false)
	again := v.conditions(first, 2, false)
	for i, c := range first {
		if !again[i].LastTransitionTime.Equal(&c.LastTransitionTime) || again[i].ObservedGeneration != 2 {
			t.Errorf("%+v became %+v", c, again[i])
		}
	}
	ready := again[slices.IndexFunc(again, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionReady })]
	if ready.Status != metav1.ConditionFalse || ready.Reason != "Incompatible" || ready.Message != "it has two" {
		t.Errorf("the summary is %+v", ready)
	}
}

func TestWhatAnEarlierRunFoundHoldsForTheSameGeneration(t *testing.T) {
	v := verdicts{reachable: good("Reachable"), configured: good("Configured"), imported: good("Imported")}
	p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	p.Status.Conditions = v.conditions(nil, 3, false)
	if k := known(p); !k.configured.ok() || !k.imported.ok() || k.reachable.ok() {
		t.Errorf("known: %+v", k)
	}
	p.Generation = 4
	if k := known(p); k.configured.ok() || k.imported.ok() {
		t.Errorf("known of another generation: %+v", k)
	}
}

func TestVersionsOfAnArray(t *testing.T) {
	for text, fits := range map[string]bool{
		"20.12-sp2": true, "20.12-sp2-120": true, "20.12-sp3": true, "21.01": true, "22.06-sp1-123": true, "23.09.1-5": true,
		"20.12": false, "20.12-sp1-900": false, "20.11-sp9": false, "16.05": false,
		// It does not say its release.
		"0.0.09-05.1--77.7": true, "": true, "new": true,
	} {
		_, v := compatible(&v1alpha1.Pool{}, array.Health{Version: text, Pools: []array.Pool{{ID: "pool-1"}}}, false)
		if v.ok() != fits || !fits && v.reason != "VersionTooOld" {
			t.Errorf("version %q: %+v, want %v", text, v, fits)
		}
		if said := len(text) > 3 && text[:2] != "0."; said != (v.reason != "VersionUnknown") || said == (v.ok() && v.message != "") {
			t.Errorf("version %q: %+v", text, v)
		}
	}
}

func TestWhichArraysFit(t *testing.T) {
	one, two := array.Pool{ID: "pool-00000001"}, array.Pool{ID: "pool-00000002"}
	for _, tc := range []struct {
		name        string
		pool, known string
		health      array.Health
		want, id    string
	}{
		{"one pool", "", "", array.Health{IQN: "iqn.a", Pools: []array.Pool{one}}, "Compatible", one.ID},
		{"two pools", "", "", array.Health{IQN: "iqn.a", Pools: []array.Pool{one, two}}, "SeveralPools", ""},
		{"two pools, one named", two.ID, "", array.Health{IQN: "iqn.a", Pools: []array.Pool{one, two}}, "Compatible", two.ID},
		{"another one named", "pool-3", "", array.Health{IQN: "iqn.a", Pools: []array.Pool{one, two}}, "NoSuchPool", ""},
		{"no pool", "", "", array.Health{IQN: "iqn.a"}, "NoSuchPool", ""},
		{"the same array", "", "iqn.a", array.Health{IQN: "iqn.a", Pools: []array.Pool{one}}, "Compatible", one.ID},
		{"another array", "", "iqn.b", array.Health{IQN: "iqn.a", Pools: []array.Pool{one}}, "NotThisArray", ""},
	} {
		p := &v1alpha1.Pool{}
		p.Spec.VPSA.Pool, p.Status.VPSA.IQN = tc.pool, tc.known
		tc.health.Version = "22.06"
		on, v := compatible(p, tc.health, false)
		if v.reason != tc.want || on.ID != tc.id {
			t.Errorf("%s: %+v with pool %q, want %s with %q", tc.name, v, on.ID, tc.want, tc.id)
		}
	}
}

func TestModeOfAPool(t *testing.T) {
	for _, tc := range []struct {
		on   array.Pool
		t    v1alpha1.CapacityThresholds
		want array.Mode
	}{
		{array.Pool{Total: 100, Available: 20}, v1alpha1.CapacityThresholds{}, array.Normal},
		{array.Pool{Total: 100, Available: 19}, v1alpha1.CapacityThresholds{}, array.Alert},
		{array.Pool{Total: 100, Available: 9}, v1alpha1.CapacityThresholds{}, array.Protected},
		{array.Pool{Total: 100, Available: 4}, v1alpha1.CapacityThresholds{}, array.Emergency},
		{array.Pool{Total: 100, Available: 4}, v1alpha1.CapacityThresholds{Alert: "0.03", Protected: "0.02", Emergency: "0.01"}, array.Normal},
		{array.Pool{Total: 100, Available: 90, Mode: array.Protected}, v1alpha1.CapacityThresholds{}, array.Protected},
		{array.Pool{Total: 100, Available: 4, Mode: array.Normal}, v1alpha1.CapacityThresholds{}, array.Normal},
		{array.Pool{Total: 100, Available: 4, Mode: "purple"}, v1alpha1.CapacityThresholds{}, array.Emergency},
		{array.Pool{}, v1alpha1.CapacityThresholds{}, array.Normal},
	} {
		if got := modeOf(tc.on, tc.t); got != tc.want {
			t.Errorf("%+v, %+v: %s, want %s", tc.on, tc.t, got, tc.want)
		}
	}
	if rules.WorseMode(array.Normal, array.Alert) != array.Alert || rules.WorseMode(array.Emergency, array.Protected) != array.Emergency {
		t.Error("the worst mode does not win")
	}
}
