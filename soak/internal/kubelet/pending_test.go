package kubelet

import (
	"slices"
	"testing"
	"time"
)

func TestWaitsAreTheKubelets(t *testing.T) {
	timing := Timing{}.orReal()
	var got []time.Duration
	var wait time.Duration
	for range 11 {
		wait = timing.after(wait)
		got = append(got, wait)
	}
	second := time.Second
	want := []time.Duration{
		second / 2, second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second,
		122 * second, 122 * second, 122 * second,
	}
	if !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	if timing.Period != 100*time.Millisecond || timing.CallTimeout != 2*time.Minute {
		t.Errorf("period %s and timeout %s, want 100ms and 2m", timing.Period, timing.CallTimeout)
	}
}

func TestPendingRefuses(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const wait = time.Second
	inA, inB, shared := key{"v", "a"}, key{"v", "b"}, key{"v", ""}
	for _, row := range []struct {
		name    string
		prepare func(p *pending)
		k       key
		op      string
		after   time.Duration
		want    bool
	}{
		{"nothing is in the way", func(*pending) {}, inA, "mount", 0, true},
		{"the same runs", func(p *pending) { p.begin(inA, "mount", start) }, inA, "mount", 0, false},
		{"another of the volume runs", func(p *pending) { p.begin(inA, "mount", start) }, inA, "unmount", 0, false},
		{"it runs for another pod", func(p *pending) { p.begin(inA, "mount", start) }, inB, "mount", 0, true},
		{"it runs for all pods", func(p *pending) { p.begin(shared, "mount", start) }, inB, "unmount", 0, false},
		{"one pod's is in the way of all", func(p *pending) { p.begin(inB, "unmount", start) }, shared, "mount", 0, false},
		{"another volume's runs", func(p *pending) { p.begin(key{"w", "a"}, "mount", start) }, inA, "mount", 0, true},
		{"it succeeded", func(p *pending) { fail(p, inA, false, start) }, inA, "mount", 0, true},
		{"it failed and waits", func(p *pending) { fail(p, inA, true, start) }, inA, "mount", wait - 1, false},
		{"it failed and has waited", func(p *pending) { fail(p, inA, true, start) }, inA, "mount", wait, true},
		{"another failed", func(p *pending) { fail(p, inA, true, start) }, inA, "unmount", 0, true},
		{"the second wait is longer", func(p *pending) {
			fail(p, inA, true, start)
			fail(p, inA, true, at(wait))
		}, inA, "mount", 2 * wait, false},
		{"a success ends the row", func(p *pending) {
			fail(p, inA, true, start)
			fail(p, inA, false, at(wait))
			fail(p, inA, true, at(wait))
		}, inA, "mount", 2 * wait, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPending(Timing{FirstWait: wait}.orReal())
			row.prepare(p)
			if got := p.begin(row.k, row.op, at(row.after)); got != row.want {
				t.Errorf("may begin: %t, want %t", got, row.want)
			}
		})
	}
}

func fail(p *pending, k key, failed bool, now time.Time) {
	if !p.begin(k, "mount", now) {
		panic("it cannot begin")
	}
	p.end(k, failed, now)
}

func TestPendingForgetsWhatSucceeded(t *testing.T) {
	p := newPending(Timing{}.orReal())
	fail(p, key{"v", "a"}, false, time.Now())
	if len(p.byVolume) != 0 {
		t.Errorf("%d volumes are remembered, want none", len(p.byVolume))
	}
}
