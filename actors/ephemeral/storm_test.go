package ephemeral

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// luck decides what goes wrong. It decides by its seed about each name apart, so that a seed has the
// same faults again, in whatever order the goroutines ask.
type luck struct {
	seed  uint64
	calm  atomic.Bool
	mu    sync.Mutex
	asked map[string]int
}

// newLuck takes the seed that KATBOX_STORM_SEED names, or any.
func newLuck(t *testing.T) *luck {
	t.Helper()
	seed := rand.Uint64()
	if named := os.Getenv("KATBOX_STORM_SEED"); named != "" {
		var err error
		if seed, err = strconv.ParseUint(named, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KATBOX_STORM_SEED=%d", seed)
	return &luck{seed: seed, asked: map[string]int{}}
}

// bad reports whether this thing fails now, which is once in a number of times.
func (l *luck) bad(name string, times uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[name]++
	h := fnv.New64a()
	fmt.Fprint(h, name, l.asked[name])
	return !l.calm.Load() && rand.New(rand.NewPCG(l.seed, h.Sum64())).Uint64N(times) == 0
}

// failsActor is for failingAt.
func (l *luck) failsActor(m any) bool {
	switch m := m.(type) {
	case *actor.Stopping, *actor.Stopped, *actor.Restarting, *actor.PoisonPill: // in these nothing is done
		return false
	case messages.Request:
		return l.bad(fmt.Sprintf("%T %s", m, m.Route().ID), 30)
	default:
		return l.bad(fmt.Sprintf("%T", m), 30)
	}
}

// failsCommit is for fakeRecords.fail. The changes that happen to share a commit share its luck.
func (l *luck) failsCommit(changes []volume.Change) error {
	failed := false
	for _, change := range changes {
		failed = l.bad("commit "+string(change.ID), 20) || failed
	}
	if failed {
		return unix.EIO
	}
	return nil
}

// failsMount and failsUnmount are for fakeMounter.fail.
func (l *luck) failsMount(target string) error   { return l.busy("mount " + target) }
func (l *luck) failsUnmount(target string) error { return l.busy("unmount " + target) }

func (l *luck) busy(name string) error {
	if l.bad(name, 4) {
		return unix.EBUSY
	}
	return nil
}

// deletions are those that were recorded as begun.
type deletions struct {
	// unfinished were begun before the restart: their data may have been erased then. empty have no
	// data to erase: their publish failed, and so did the end of their record.
	unfinished, empty atomic.Int64
}

func (d *deletions) restarted(records []volume.Record) {
	d.empty.Store(0)
	for _, record := range records {
		if record.Phase == volume.Deleting {
			d.unfinished.Add(1)
		}
	}
}

// begin is called with the changes of each commit that succeeds.
func (d *deletions) begin(h *testNode, changes []volume.Change) {
	for _, change := range changes {
		if change.Record == nil || change.Record.Phase != volume.Deleting {
			continue
		}
		if _, err := os.Lstat(h.data(change.Record.Pod, change.ID)); err != nil {
			d.empty.Add(1)
		}
	}
}

// decide takes one of the decisions of people about a volume, or reports how its pod ended. Most are
// refused.
func (h *testNode) decide(id volume.ID, which int) {
	ctx := withTimeout(h.t, time.Minute)
	switch which {
	case 0, 1:
		_, _ = h.node.Pin(ctx, id, time.Now().Add(time.Duration(1+which*100)*time.Minute), "ann", "a bug")
	case 2:
		_, _ = h.node.Unpin(ctx, id, "ann")
	case 3:
		_, _ = h.node.Release(ctx, id, "ann", "")
	case 4:
		_ = h.node.Purge(ctx, id, "ann", "")
	default:
		_ = h.node.End(ctx, id, testPod, volume.Outcome(which-4))
	}
}

// wantPinned compares the metrics of what is pinned with the records.
func (h *testNode) wantPinned() {
	h.t.Helper()
	pinned := 0.
	for _, record := range h.records.all() {
		if record.Phase == volume.Retained && record.Hold.Kind == volume.Pinned && time.Now().Before(record.HeldUntil()) {
			pinned++
		}
	}
	h.wantValues("pinned", metricstest.Values{"katbox_pinned_volumes": pinned})
}

// TestMetricsAfterAStorm has volumes published, unpublished, expired, evicted, pinned, released and
// purged, and their actors fail, in whatever order, and counts at the end.
func TestMetricsAfterAStorm(t *testing.T) {
	const volumes, rounds = 30, 40
	luck := newLuck(t)
	chance := rand.New(rand.NewPCG(luck.seed, 0))
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.more, h.lifespan = []actor.ReceiverMiddleware{failingAt(luck.failsActor)}, time.Hour
		h.maxPinned = amount(t, "1Mi")
		h.start()
		defer h.stop()
		var begun deletions
		h.records.fail(func(changes []volume.Change) error {
			err := luck.failsCommit(changes)
			if err == nil {
				begun.begin(h, changes)
			}
			return err
		})
		h.mounter.fail(luck.failsMount, luck.failsUnmount)
		call := func(i int, publish bool) error {
			p := h.publication()
			p.ID, p.Target.Path = numbered(i), h.target(testPod, string(numbered(i)))
			p.Terms = volume.Terms{Lifespan: h.lifespan, LifespanSucceeded: h.lifespan / 3, Retain: volume.Retain(i % 2)}
			if publish {
				return h.node.Publish(withTimeout(t, time.Minute), p)
			}
			return h.node.Unpublish(withTimeout(t, time.Minute), p.ID, p.Target.Path)
		}
		restarts, retries := 0., 0.
		count := func(got metricstest.Values) {
			restarts, retries = restarts+got["katbox_actor_restarts_total"], retries+got["katbox_unmount_retries_total"]
		}
		for round := range rounds {
			for i := range volumes {
				publish := chance.IntN(2) == 0
				go func() { _ = call(i, publish) }()
			}
			h.disk.set([]uint64{1000, 10}[round%2], nil)
			for i := range volumes {
				if i%6 == 0 { // some meet the calls, others sleeping volumes
					time.Sleep(time.Duration(chance.IntN(2)) * time.Second)
				}
				id, which := numbered(chance.IntN(volumes)), chance.IntN(8)
				go h.decide(id, which)
			}
			time.Sleep(time.Duration(1+chance.IntN(3600)) * time.Second)
			if round == rounds/2 {
				h.stop()
				count(metricstest.Of(t, h.metrics))
				begun.restarted(h.records.all())
				h.start()
			}
		}
		luck.calm.Store(true)
		h.disk.set(1000, nil)
		// All go on by then, parked ones included. What happens each second, and what expires a
		// lifespan after a call, does not meet the calls that follow.
		time.Sleep(h.lifespan + 500*time.Millisecond)
		for i := range volumes { // the kubelet settles what was uncertain
			if err := call(i, i%2 == 0); err != nil {
				t.Errorf("after the storm: %v", err)
			}
		}
		h.wantMetrics("after the storm", counted{volume.Published: volumes / 2, volume.Retained: h.records.retained()}, metricstest.Values{
			`katbox_parked_volumes`: 0, `katbox_stuck_volumes{phase="Unpublishing"}`: 0, `katbox_stuck_volumes{phase="Published"}`: 0,
			`katbox_stuck_volumes{phase="Deleting"}`: 0,
		})
		h.wantPinned()
		got := metricstest.Of(t, h.metrics)
		purged, deleted := got[`katbox_evictions_total{reason="purged"}`], 0.
		for name, value := range got {
			if strings.HasPrefix(name, "katbox_evictions_total{") {
				deleted += value
			}
		}
		t.Logf("%v deleted, %v of them purged, %v restarts, %v retries", deleted, purged, restarts, retries)
		if count(got); deleted == purged || restarts == 0 || retries == 0 {
			t.Errorf("that was no storm: %v deleted, %v of them purged, %v restarts, %v retries", deleted, purged, restarts, retries)
		}
		unfinished, empty := begun.unfinished.Load(), begun.empty.Load()
		if erased := got["katbox_erased_volumes_total"]; erased < deleted-float64(unfinished+empty) {
			t.Errorf("%v volumes were deleted, %d of them begun before the restart and %d without data, and %v erased",
				deleted, unfinished, empty, erased)
		}
	})
}
