package check

import (
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

func TestCompareCost(t *testing.T) {
	// times is a number of equal stretches.
	times := func(n, calls int, perCall time.Duration, retained int) []stretch {
		var list []stretch
		for range n {
			list = append(list, stretch{calls: calls, cpu: perCall * time.Duration(calls), retained: retained})
		}
		return list
	}
	join := func(lists ...[]stretch) (all []stretch) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, test := range []struct {
		name      string
		list      []stretch
		ok        bool
		few, many time.Duration
	}{
		{"nothing", nil, false, 0, 0},
		{"flat", join(times(30, 100, 1000, 10), times(30, 100, 1000, 1000)), true, 1000, 1000},
		{"dearer, in any order", join(times(30, 100, 9000, 1000), times(30, 100, 1000, 10)), true, 1000, 9000},
		{"none at first", join(times(30, 100, 1000, 0), times(30, 100, 2000, 5)), true, 1000, 2000},
		{"too few calls with few volumes", join(times(10, 100, 1000, 10), times(30, 100, 9000, 1000)), false, 0, 0},
		{"too few calls with many volumes", join(times(30, 100, 1000, 10), times(10, 100, 9000, 1000)), false, 0, 0},
		{"too few calls at all", times(19, 100, 1000, 10), false, 0, 0},
		{"no more volumes", times(60, 100, 1000, 10), false, 0, 0},
		{"not enough more volumes", join(times(30, 100, 1000, 10), times(30, 100, 9000, 49)), false, 0, 0},
		{"the same calls would count on both sides", times(1, 5000, 1000, 10), false, 0, 0},
	} {
		few, many, ok := compareCost(test.list, enoughCalls, func(s stretch) int { return s.retained })
		if ok != test.ok {
			t.Errorf("%s: judged %t, want %t", test.name, ok, test.ok)
			continue
		}
		if ok && (few.perCall() != test.few || many.perCall() != test.many) {
			t.Errorf("%s: %s and %s for a call, want %s and %s", test.name, few.perCall(), many.perCall(), test.few, test.many)
		}
	}
}

func TestStretches(t *testing.T) {
	samples := []sample{
		{at(0), 0, 0, 0, 0},
		{at(1), 100, time.Second, 10, 0},
		{at(2), 110, 2 * time.Second, 10, 0},  // hardly any calls
		{at(3), 300, 3 * time.Second, 10, 10}, // disturbed
		{at(4), 400, 4 * time.Second, 20, 30},
	}
	got := stretches(samples, func(from, _ time.Time) bool { return from.Equal(at(2)) })
	want := []stretch{{100, time.Second, 5, 0}, {100, time.Second, 15, 20}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("stretches %v, want %v", got, want)
	}
}

func TestCost(t *testing.T) {
	for _, test := range []struct {
		name string
		// dear is what a call costs more for each volume.
		dear            time.Duration
		mounts, retains bool
		killed          bool
		want            int
	}{
		{"flat", 0, true, true, false, 0},
		{"by mounted", 10 * time.Microsecond, true, false, false, 1},
		{"by retained", 10 * time.Microsecond, false, true, false, 1},
		{"in proportion, but hardly", 100 * time.Nanosecond, false, true, false, 0},
		{"while it recovers only", 10 * time.Microsecond, false, true, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := inWorld(t, nil, func(w *world) {
				var cpu time.Duration
				calls := 0
				for i := range 100 {
					volumes := i * i / 10
					var mounted, retained int
					if test.mounts {
						mounted = volumes
					}
					if test.retains {
						retained = volumes
					}
					if test.killed && i == 50 {
						w.timeline.Begin(workload.DaemonKill, "")
					}
					w.checker.Sample(time.Now(), calls, cpu, mounted, retained)
					calls += 100
					cpu += 100 * (100*time.Microsecond + test.dear*time.Duration(volumes))
					time.Sleep(time.Second)
				}
				w.finish()
			})
			w.want(history.FlatCost, test.want)
		})
	}
}
