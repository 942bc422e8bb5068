package classes

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// keepLong retains volumes of 1 GiB for 100 hours, since 90 hours or less, the oldest first.
func (k *keeping) keepLong(names ...string) {
	for i, name := range names {
		since := k.now.Add(-90*time.Hour + time.Duration(i)*time.Minute)
		k.set(&poolmessages.VolumeRetained{Name: name, Pool: "p", Size: 1 << 30, Since: since.Round(0), Lifespan: 100 * time.Hour}, k.now)
	}
}

// gone deletes these, and asks the array, which then has some GiB free. It fails the test unless that stops what goes
// early, or does not.
func (k *keeping) gone(free int64, stops bool, names ...string) {
	k.Helper()
	for _, name := range names {
		k.begin(k.volumes[name], true)
	}
	for _, name := range names {
		k.ended(name, "p", true, k.now)
	}
	k.now = k.now.Add(time.Second)
	if stopped := k.free(free); stopped != stops {
		k.Errorf("after %q with %d GiB free: stopped is %t", names, free, stopped)
	}
}

// TestNothingGoesWhereThatMakesNoRoom: after a few the others stay, one is tried after a while, and once that makes room
// all goes on.
func TestNothingGoesWhereThatMakesNoRoom(t *testing.T) {
	k := newKeeping(t)
	k.keepLong("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
	k.free(11) // 9 GiB short
	k.wantDue("at first", "a* b* c* d*")
	k.gone(11, true, "a", "b", "c", "d")
	again := k.wantDue("those made no room", "")
	if wait := again.Sub(k.now); wait < 5*time.Minute || wait > 10*time.Minute {
		t.Errorf("the next look is in %v", wait)
	}
	k.free(5)
	k.wantDue("whatever is free by now", "")
	k.now = again
	k.wantDue("one is tried", "e*")
	k.gone(5, true, "e")
	longer := k.wantDue("they wait longer", "")
	if longer.Sub(k.now) < 10*time.Minute {
		t.Errorf("the next look is in %v", longer.Sub(k.now))
	}
	k.now = longer
	k.wantDue("one is tried again", "f*")
	k.gone(6, false, "f")
	k.wantDue("it made room", "g* h* i* j*")
	// New volumes take what came free at once: that is no proof against it.
	k.gone(6, true, "g", "h", "i", "j")
	k = newKeeping(t)
	k.keepLong("a", "b", "c", "d", "e", "f")
	k.free(11)
	for _, name := range []string{"a", "b", "c", "d"} {
		k.begin(k.volumes[name], true)
		k.ended(name, "p", true, k.now)
	}
	k.now = k.now.Add(time.Second)
	if k.learn(&poolmessages.PoolReport{
		Name: "p", State: v1alpha1.PoolReady, On: array.Pool{Total: 100 << 30, Available: 11 << 30},
		Thresholds: poolmessages.Thresholds{Alert: 0.2, Emergency: 0.05},
		Measured:   k.now,
	}, 4<<30) {
		t.Error("stopped, though a new volume has taken the room")
	}
	k.wantDue("it goes on", "e* f*")
}

// TestStopIsOverWithThePressure, and the next time it is judged anew.
func TestStopIsOverWithThePressure(t *testing.T) {
	k := newKeeping(t)
	k.keepLong("a", "b", "c", "d", "e", "f", "g", "h")
	k.free(11)
	k.gone(11, true, "a", "b", "c", "d")
	k.now = k.now.Add(11 * time.Minute)
	k.free(50)
	k.now = k.now.Add(time.Minute)
	k.free(11)
	k.wantDue("pressure again", "e* f* g* h*")
}
