package classes

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// keeping is a retention with a pool of 100 GiB, and a time at which it is asked.
type keeping struct {
	*testing.T
	*retention
	now time.Time
}

func newKeeping(t *testing.T) *keeping {
	k := &keeping{T: t, retention: newRetention(), now: time.Now()}
	k.free(50)
	return k
}

// free tells that some GiB are free, by an array that was asked just now.
func (k *keeping) free(gib int64) (stopped bool) {
	return k.learn(&poolmessages.PoolReport{
		Name: "p", State: v1alpha1.PoolReady, On: array.Pool{Total: 100 << 30, Available: gib << 30},
		Thresholds: poolmessages.Thresholds{Alert: 0.2, Emergency: 0.05},
		Measured:   k.now,
	}, 0)
}

// keep retains volumes of 1 GiB for an hour, the first one since most minutes.
func (k *keeping) keep(names string, minutes int) {
	for i, name := range strings.Fields(names) {
		since := k.now.Add(-time.Duration(minutes-i) * time.Minute)
		k.set(&poolmessages.VolumeRetained{Name: name, Pool: "p", Size: 1 << 30, Since: since.Round(0), Lifespan: time.Hour}, k.now)
	}
}

// wantDue fails the test unless these go now, those that go early with an asterisk.
func (k *keeping) wantDue(when, want string) time.Time {
	k.Helper()
	due, again := k.due(k.now)
	var got []string
	for _, e := range due {
		text := e.name
		if e.early {
			text += "*"
		}
		got = append(got, text)
	}
	if strings.Join(got, " ") != want {
		k.Errorf("%s: %q go, want %q", when, got, want)
	}
	return again
}

func TestVolumesGoWhenTheirLifespanIsOver(t *testing.T) {
	k := newKeeping(t)
	k.keep("a b c", 59)
	if again := k.wantDue("at first", ""); again.Sub(k.now) != time.Minute {
		t.Errorf("the next look is in %v", again.Sub(k.now))
	}
	k.now = k.now.Add(2 * time.Minute)
	k.wantDue("after two minutes", "a b")
	k.begin(k.volumes["a"], false)
	k.wantDue("while one is deleted", "b")
	k.ended("a", "p", true, k.now)
	k.begin(k.volumes["b"], false)
	k.ended("b", "p", false, k.now)
	if again := k.wantDue("after a failure", ""); again.Sub(k.now) != time.Minute {
		t.Errorf("the next look is in %v", again.Sub(k.now))
	}
	k.now = k.now.Add(time.Minute)
	k.wantDue("a minute later", "b c")
	k.remove("b") // restored
	k.wantDue("without the one that was restored", "c")
}

func TestNoMoreThanAFewAreDeletedAtOnce(t *testing.T) {
	k := newKeeping(t)
	k.keep("a b c d e f g", 100)
	k.wantDue("the oldest go first", "a b c d")
	k.begin(k.volumes["a"], false)
	k.wantDue("while one is deleted", "b c d")
}

// TestPressureTakesTheOldestAndNoMoreThanIsNeeded.
func TestPressureTakesTheOldestAndNoMoreThanIsNeeded(t *testing.T) {
	k := newKeeping(t)
	k.keep("a b c d", 30)
	k.free(18) // 2 GiB short, 87% of lifespans are left
	k.wantDue("a little pressure", "")
	k.free(11) // 40%: 24 minutes
	k.wantDue("more", "a* b* c* d*")
	k.keep("d", 10)
	k.wantDue("the young one stays", "a* b* c*")
	k.free(19)
	k.now = k.now.Add(27 * time.Minute)
	k.wantDue("one GiB short", "a*")
	k.begin(k.volumes["a"], false)
	k.wantDue("while that one goes", "")
	k.ended("a", "p", true, k.now)
	k.wantDue("until the array was asked", "")
	k.now = k.now.Add(time.Second)
	k.free(19)
	k.wantDue("it has freed nothing", "b*")
}

// TestModeOfTheArrayCounts where it tells one.
func TestModeOfTheArrayCounts(t *testing.T) {
	for _, tc := range []struct {
		mode array.Mode
		free int64
		want float64
	}{
		{"", 50, 1}, {"", 20, 1}, {"", 5, 0}, {"", 0, 0}, {array.Normal, 1, 1}, {array.Alert, 50, 2. / 3}, {array.Protected, 50, 1. / 3},
		{array.Alert, 5, 0}, {array.Emergency, 50, 0},
	} {
		f := &poolmessages.PoolReport{On: array.Pool{Total: 100, Available: tc.free, Mode: tc.mode},
			Thresholds: poolmessages.Thresholds{Alert: 0.2, Emergency: 0.05}}
		if got := factorOf(f); got != tc.want {
			t.Errorf("mode %q, %d%% free: %v, want %v", tc.mode, tc.free, got, tc.want)
		}
	}
	if got := factorOf(&poolmessages.PoolReport{}); got != 1 {
		t.Errorf("a pool that was not looked at: %v", got)
	}
}

func TestNothingGoesFromAPoolThatCannotBeReached(t *testing.T) {
	k := newKeeping(t)
	k.keep("a b", 100)
	k.learn(&poolmessages.PoolReport{Name: "p", State: v1alpha1.PoolUnreachable, On: array.Pool{Total: 100, Available: 0}}, 0)
	k.wantDue("away", "")
	k.free(50)
	k.wantDue("back", "a b")
	k.forget("p")
	k.wantDue("the pool is gone", "")
}

// stepped is a time after the wall clock was stepped. No function of package time makes one without stepping the
// clock of the machine, so this relies on how a time.Time keeps its two readings.
func stepped(t time.Time, by time.Duration) time.Time {
	readings := (*struct {
		wall      uint64 // from bit 30 on, seconds
		monotonic int64
		location  *time.Location
	})(unsafe.Pointer(&t))
	readings.wall += uint64(by/time.Second) << 30
	return t
}

// TestStepOfTheWallClockMovesNoDeadline of a volume that was seen before.
func TestStepOfTheWallClockMovesNoDeadline(t *testing.T) {
	for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			k := newKeeping(t)
			k.keep("a", 30)
			written := k.volumes["a"].written
			k.now = stepped(k.now.Add(29*time.Minute), step)
			k.set(&poolmessages.VolumeRetained{Name: "a", Pool: "p", Size: 1 << 30, Since: written, Lifespan: time.Hour}, k.now) // seen again
			k.wantDue("before its deadline", "")
			k.now = k.now.Add(time.Minute)
			k.wantDue("at its deadline", "a")
		})
	}
}

// TestVolumeFromTheFutureIsNew: the machine that wrote its time had another clock.
func TestVolumeFromTheFutureIsNew(t *testing.T) {
	k := newKeeping(t)
	k.keep("a", -1000)
	k.now = k.now.Add(59 * time.Minute)
	k.wantDue("before its lifespan is over", "")
	k.now = k.now.Add(time.Minute)
	k.wantDue("when it is", "a")
}

// BenchmarkRetention: what a look costs with many retained volumes.
func BenchmarkRetention(b *testing.B) {
	for _, free := range []int64{50, 10} {
		b.Run(fmt.Sprintf("%d%% free", free), func(b *testing.B) {
			r, now := newRetention(), time.Now()
			r.learn(&poolmessages.PoolReport{
				Name: "p", State: v1alpha1.PoolReady, On: array.Pool{Total: 100, Available: free},
				Thresholds: poolmessages.Thresholds{Alert: 0.2, Emergency: 0.05},
			}, 0)
			for i := range 100_000 {
				r.set(&poolmessages.VolumeRetained{Name: fmt.Sprint(i), Pool: "p", Size: 1, Since: now, Lifespan: time.Duration(i) * time.Hour}, now)
			}
			for b.Loop() {
				r.due(now)
			}
		})
	}
}
