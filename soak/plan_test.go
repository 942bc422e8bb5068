package main

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

func testOptions() options {
	return options{
		pods: 400, parallel: 4, volumes: 2, lifespan: time.Second,
		repeat: 0.3, cancel: 0.2, readOnly: 0.1, kills: 5, seed: 1,
	}
}

func decisions(o options) []podPlan {
	pods := make([]podPlan, o.pods)
	// Backwards: what is decided for a pod must not depend on the others.
	for i := range slices.Backward(pods) {
		pods[i] = plan{o}.pod(i)
	}
	return pods
}

func TestSameSeedSameDecisions(t *testing.T) {
	o := testOptions()
	forwards := make([]podPlan, o.pods)
	for i := range forwards {
		forwards[i] = plan{o}.pod(i)
	}
	if !reflect.DeepEqual(forwards, decisions(o)) {
		t.Error("the same seed made other pods")
	}
	if !reflect.DeepEqual(plan{o}.kills(), plan{o}.kills()) {
		t.Error("the same seed made other kills")
	}
	other := o
	other.seed = 2
	if reflect.DeepEqual(decisions(o), decisions(other)) {
		t.Error("another seed made the same pods")
	}
	if reflect.DeepEqual(plan{o}.kills(), plan{other}.kills()) {
		t.Error("another seed made the same kills")
	}
}

// TestSeedOne pins the decisions: a seed from an old report has to stay good.
func TestSeedOne(t *testing.T) {
	got := plan{testOptions()}.pod(0)
	if want := "e60659f7-ee10-41b5-8820-c7673d4ebd67"; got.uid != want {
		t.Errorf("the first pod of seed 1 is %s, it was %s", got.uid, want)
	}
	if want := 22579357 * time.Nanosecond; got.life != want {
		t.Errorf("the first pod of seed 1 lives %s, it lived %s", got.life, want)
	}
}

func TestOneShareLeavesTheOtherDecisions(t *testing.T) {
	a, b := testOptions(), testOptions()
	b.cancel = 0.9
	for i := range a.pods {
		p, q := plan{a}.pod(i), plan{b}.pod(i)
		if p.uid != q.uid || p.volumes[1].unpublish.repeat != q.volumes[1].unpublish.repeat ||
			p.volumes[1].marker != q.volumes[1].marker {
			t.Fatalf("pod %d: another --cancel changed more than the cancellations:\n%+v\n%+v", i, p, q)
		}
	}
}

func TestShares(t *testing.T) {
	o := testOptions()
	o.pods = 2000
	var together, inTurn, cancelled, readOnly float64
	for _, pod := range decisions(o) {
		if pod.life < 0 || pod.life > longestLife {
			t.Errorf("a pod lives %s", pod.life)
		}
		for _, v := range pod.volumes {
			for _, c := range []callPlan{v.publish, v.unpublish} {
				switch c.repeat {
				case twiceTogether:
					together++
				case twiceInTurn:
					inTurn++
				}
				if c.cancel {
					cancelled++
				}
				if c.cancelAfter < 0 || c.cancelAfter > latestCancel {
					t.Errorf("a call is cancelled after %s", c.cancelAfter)
				}
			}
			if v.readOnly {
				readOnly++
			}
		}
	}
	calls := float64(o.pods * o.volumes * 2)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"doubled together", together / calls, o.repeat / 2},
		{"doubled in turn", inTurn / calls, o.repeat / 2},
		{"cancelled", cancelled / calls, o.cancel},
		{"read-only", readOnly * 2 / calls, o.readOnly},
	} {
		if c.got < c.want-0.02 || c.got > c.want+0.02 {
			t.Errorf("share %s is %.3f, want about %.2f", c.name, c.got, c.want)
		}
	}
}

func TestKillsAreSpread(t *testing.T) {
	o := testOptions()
	for seed := range uint64(50) {
		o.seed = seed
		kills := plan{o}.kills()
		if len(kills) != o.kills {
			t.Fatalf("%d kills, want %d", len(kills), o.kills)
		}
		part := o.pods / o.kills
		for i, k := range kills {
			if k.pods < i*part || k.pods > (i+1)*part || k.pods >= o.pods {
				t.Errorf("seed %d: kill %d comes after %d pods, want it in part %d of %d", seed, i, k.pods, i+1, o.kills)
			}
		}
	}
	o.pods = 1
	for _, k := range (plan{o}).kills() {
		if k.pods != 0 {
			t.Errorf("a kill waits for %d pods, there is only one that could end", k.pods)
		}
	}
}

func TestNames(t *testing.T) {
	pod := plan{testOptions()}.pod(3)
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(pod.uid) {
		t.Errorf("pod UID %s is no UUID", pod.uid)
	}
	a, b := pod.volumes[0].id, pod.volumes[1].id
	if !regexp.MustCompile(`^csi-[0-9a-f]{64}$`).MatchString(a) {
		t.Errorf("volume ID %s is not like a kubelet's", a)
	}
	if a == b {
		t.Errorf("both volumes have the ID %s", a)
	}
}
