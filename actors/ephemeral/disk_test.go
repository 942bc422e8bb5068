package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/messages"
)

// diskTest is a disk actor on its own.
type diskTest struct {
	bin     *fakeTrash
	calls   *pace.Calls
	disk    *actor.PID
	root    *actor.RootContext
	metrics *metrics.Metrics
	lines   *list[string]
	// factor is the pressure factor that a measurement shows, as the bits of a float64.
	factor *atomic.Uint64
	// counts is how many nanoseconds the kernel needs to count what was erased.
	counts *atomic.Int64
	// told are the measurements that the supervisor received.
	told *list[messages.Pressure]
}

// list is filled by one goroutine and read by another.
type list[T any] struct {
	mu  sync.Mutex
	all []T
}

func (l *list[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
}

func (l *list[T]) get() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// withDisk runs a test in a bubble with an eraser that takes atOnce turns at a time.
func withDisk(t *testing.T, atOnce int, bin *fakeTrash, test func(t *testing.T, w diskTest)) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
		ctx, cancel := context.WithCancel(t.Context())
		workers := actors.NewWorkers(actors.MaxWorkers)
		w := diskTest{bin: bin, calls: pace.NewCalls(), root: system.Root, factor: &atomic.Uint64{}, counts: &atomic.Int64{},
			metrics: metrics.New("test", ""), lines: &list[string]{}, told: &list[messages.Pressure]{}}
		supervisor := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if m, ok := c.Message().(*messages.Pressure); ok {
				w.told.add(*m)
			}
		}))
		log := funcr.New(func(_, line string) { w.lines.add(line) }, funcr.Options{})
		factor := func() float64 { return math.Float64frombits(w.factor.Load()) }
		w.factor.Store(math.Float64bits(1))
		// What is free says how large the factor is: it is 0 with half of the headroom.
		space := func() (volume.Space, error) {
			return volume.Space{Total: volume.Size{Bytes: 1000}, Free: volume.Size{Bytes: int64(500 + 500*factor())}}, nil
		}
		d := &disk{
			eraser: eraser{trash: bin, environment: &environment{
				System: &actors.System{Workers: workers}, ctx: ctx, turns: pace.NewTurns(atOnce, w.calls, actors.LowPriority, w.metrics.EntriesErased),
				Config: Config{
					Log: log, Metrics: w.metrics, Space: space, SpaceAfterErase: func(volume.Space) (volume.Space, error) {
						time.Sleep(time.Duration(w.counts.Load()))
						return space()
					},
					Limits: lifespan.Limits{Headroom: 1}, PressureInterval: 100 * 24 * time.Hour,
				},
			}},
			supervisor: supervisor,
		}
		w.disk = system.Root.Spawn(d.props())
		test(t, w)
		cancel()
		if err := workers.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, pid := range []*actor.PID{w.disk, supervisor} {
			system.Root.Stop(pid)
		}
		system.Shutdown()
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// measured is how often the disk was measured for a question.
func (w diskTest) measured() (times int) {
	for _, told := range w.told.get() {
		if told.Answers {
			times++
		}
	}
	return times
}

// full tells of each measurement whether an operation had found no room, and none is made.
func (w diskTest) full() (full []bool) {
	for _, told := range w.told.get() {
		full = append(full, told.NoSpace)
	}
	return full
}

func (w diskTest) erase(names ...string) {
	for _, name := range names {
		w.root.Send(w.disk, &messages.Erase{Name: name, Volume: "csi-x"})
	}
}

// TestSetAsideIsTriedAgain: what was in the way of an erasure may be gone soon, or only after days.
func TestSetAsideIsTriedAgain(t *testing.T) {
	b := &fakeTrash{}
	withDisk(t, 2, b, func(t *testing.T, w diskTest) {
		b.set(errors.New("something is mounted inside"), "x")
		w.erase("x")
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		tries := b.tried()
		if len(tries) < 100 {
			t.Fatalf("%d tries in a day, want about one every ten minutes", len(tries))
		}
		for i, try := range tries[1:] {
			if wait := try.Sub(tries[i]); wait < deleteBackoff.First*9/10 || wait > deleteBackoff.Longest+searchPause {
				t.Errorf("try %d came %s after the one before", i+2, wait)
			}
		}
		if lines := w.lines.get(); len(lines) != 1 || !strings.Contains(lines[0], "something is mounted inside") ||
			!strings.Contains(lines[0], "csi-x") {
			t.Errorf("log %q, want the reason and the volume, once", lines)
		}
		b.set(nil, "x")
		time.Sleep(deleteBackoff.Longest + searchPause)
		synctest.Wait()
		if b.left() != 0 {
			t.Error("still there after what was in the way has gone")
		}
	})
}

// TestWhatIsSetAsideHoldsUpNobody: neither another erasure nor the measurement that pressure waits
// for.
func TestWhatIsSetAsideHoldsUpNobody(t *testing.T) {
	b := &fakeTrash{}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		b.set(errors.New("something is mounted inside"), "x")
		w.erase("x")
		time.Sleep(time.Second)
		synctest.Wait()
		b.mu.Lock()
		b.inTheWay, b.entries["y"] = nil, 1
		b.mu.Unlock()
		w.erase("y")
		w.root.Send(w.disk, &messages.MeasureDisk{})
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(b.erased(), []string{"y"}) || w.measured() != 1 {
			t.Errorf("erased %q, measured %d times, want y and once", b.erased(), w.measured())
		}
	})
}

// TestTrashOfAnEarlierProcess is erased at the start, before anything is measured that has to show
// its space; what comes from elsewhere is found later.
func TestTrashOfAnEarlierProcess(t *testing.T) {
	b := &fakeTrash{entries: map[string]int{"a": 1, "b": 100 * batch}}
	withDisk(t, 2, b, func(t *testing.T, w diskTest) {
		w.root.Send(w.disk, &messages.MeasureDisk{})
		synctest.Wait()
		if w.measured() != 0 {
			t.Error("measured before the trash was empty")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.left() != 0 || w.measured() != 1 {
			t.Errorf("%d entries are left, measured %d times, want none and once", b.left(), w.measured())
		}
		b.set(nil, "put there by hand")
		time.Sleep(trashInterval)
		synctest.Wait()
		if b.left() != 0 {
			t.Error("the trash is not searched again")
		}
	})
}

// TestHugeVolumesTakeTurns: small ones need not wait for their end, though only one may work at a
// time.
func TestHugeVolumesTakeTurns(t *testing.T) {
	const huge, small = maxStarted - 1, 20
	b := &fakeTrash{entries: map[string]int{}}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		b.mu.Lock()
		for i := range huge {
			b.entries[fmt.Sprintf("huge%d", i)] = 1000 * batch
		}
		for i := range small {
			b.entries[fmt.Sprintf("small%d", i)] = 1
		}
		b.mu.Unlock()
		for i := range huge {
			w.erase(fmt.Sprintf("huge%d", i))
		}
		for i := range small {
			w.erase(fmt.Sprintf("small%d", i))
		}
		time.Sleep(huge * 1000 * batchTime / 10)
		synctest.Wait()
		if erased := b.erased(); len(erased) != small {
			t.Errorf("after a tenth of the time %d are erased: %q, want the %d small ones", len(erased), erased, small)
		}
		time.Sleep(time.Hour)
		if b.left() != 0 {
			t.Errorf("%d entries are left", b.left())
		}
	})
}

// TestErasuresGiveWayToCalls, but never for good, and the less the fuller the disk.
func TestErasuresGiveWayToCalls(t *testing.T) {
	const batches = 100
	for name, test := range map[string]struct {
		call   bool
		factor float64
		want   time.Duration
	}{
		"no call":             {factor: 1, want: batches * batchTime},
		"calls all the time":  {call: true, factor: 1, want: batches*batchTime + (batches-1)*pace.LongestYield},
		"and little space":    {call: true, factor: 0.5, want: batches*batchTime + (batches-1)*pace.LongestYield/2},
		"and no space at all": {call: true, factor: 0, want: batches * batchTime},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fakeTrash{}
			withDisk(t, 1, b, func(t *testing.T, w diskTest) {
				time.Sleep(time.Second)
				w.factor.Store(math.Float64bits(test.factor))
				w.root.Send(w.disk, &messages.NoSpace{})
				synctest.Wait()
				if test.call {
					defer w.calls.Begin()()
				}
				b.mu.Lock()
				b.entries = map[string]int{"x": batches * batch}
				b.mu.Unlock()
				began := time.Now()
				w.erase("x")
				time.Sleep(time.Hour)
				synctest.Wait()
				tries := b.tried()
				if len(tries) != 1 {
					t.Fatalf("%d erasures ended, want 1", len(tries))
				}
				if took := tries[0].Sub(began); took != test.want {
					t.Errorf("took %s, want %s", took, test.want)
				}
			})
		})
	}
}

// TestAFullDiskWaitsForTheTrash: what is being erased makes room, so nothing has to go for a call
// that found none.
func TestAFullDiskWaitsForTheTrash(t *testing.T) {
	b := &fakeTrash{entries: map[string]int{"a": 10 * batch}}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		// The measurement of the start ends first: a call without room would else sometimes join it.
		synctest.Wait()
		for range 2 {
			w.root.Send(w.disk, &messages.NoSpace{})
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if full := w.full(); !slices.Equal(full, []bool{false, true}) {
			t.Errorf("no room %v, want it only once nothing is erased", full)
		}
	})
}

// TestLooksGoOnWhileTheKernelCounts what was erased, which takes long while pods write.
func TestLooksGoOnWhileTheKernelCounts(t *testing.T) {
	b := &fakeTrash{}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		synctest.Wait()
		w.factor.Store(math.Float64bits(0.5))
		w.root.Send(w.disk, &messages.NoSpace{})
		synctest.Wait()
		w.counts.Store(int64(time.Minute))
		b.set(nil, "x")
		w.erase("x")
		time.Sleep(time.Minute)
		before := w.told.get()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(before) < 50 {
			t.Errorf("%d measurements in a minute, want one each second", len(before))
		}
		for _, told := range before {
			if len(told.Erased) > 0 {
				t.Errorf("%+v, though it was not counted yet", told)
			}
		}
		if after := w.told.get()[len(before):]; !slices.ContainsFunc(after, func(told messages.Pressure) bool {
			return slices.Equal(told.Erased, []volume.ID{"csi-x"})
		}) {
			t.Errorf("%+v, want one that shows what the volume took", after)
		}
	})
}

// TestProgressIsTold of what takes long, and its end.
func TestProgressIsTold(t *testing.T) {
	b := &fakeTrash{slow: time.Second}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		b.mu.Lock()
		const minutes = 3
		b.entries = map[string]int{"x": minutes * 60 * batch}
		b.mu.Unlock()
		w.erase("x")
		time.Sleep(time.Hour)
		synctest.Wait()
		if lines := w.lines.get(); len(lines) < minutes || len(lines) > minutes+1 || !strings.Contains(lines[len(lines)-1], "erased") {
			t.Errorf("log %q, want a line each minute and one at the end", lines)
		}
	})
}

// TestTrashThatCannotBeSearched is no reason for haste, whatever is due.
func TestTrashThatCannotBeSearched(t *testing.T) {
	b := &fakeTrash{broken: errors.New("too many open files")} // from the first search on
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		b.set(errors.New("something is mounted inside"), "x")
		w.erase("x")
		time.Sleep(time.Hour)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if most := int(time.Hour/searchPause) + 2; b.searches < 10 || b.searches > most {
			t.Errorf("searched %d times in an hour, want 10 to %d", b.searches, most)
		}
	})
}

// TestAnErasureWithoutAnEnd does not keep the disk from being measured.
func TestAnErasureWithoutAnEnd(t *testing.T) {
	b := &fakeTrash{entries: map[string]int{"x": 1 << 40}, slow: time.Second}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		time.Sleep(10 * time.Minute)
		w.root.Send(w.disk, &messages.MeasureDisk{})
		w.root.Send(w.disk, &messages.NoSpace{})
		time.Sleep(2 * progressInterval)
		synctest.Wait()
		if measured, full := w.measured(), w.full(); measured != 1 || !slices.Contains(full, true) {
			t.Errorf("measured %d times, no room: %v, want once and once", measured, full)
		}
	})
}

// TestErasuresGoOnWhileTheKernelCounts: on a full disk there is no time to count what each of many volumes has
// brought.
func TestErasuresGoOnWhileTheKernelCounts(t *testing.T) {
	b := &fakeTrash{}
	withDisk(t, 1, b, func(t *testing.T, w diskTest) {
		synctest.Wait()
		w.factor.Store(math.Float64bits(0))
		w.root.Send(w.disk, &messages.NoSpace{})
		synctest.Wait()
		w.counts.Store(int64(time.Minute))
		var names []string
		for i := range 10 * maxStarted {
			names = append(names, fmt.Sprint("x", i))
		}
		b.set(nil, names...)
		w.erase(names...)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if left := b.left(); left != 0 {
			t.Errorf("%d volumes are left", left)
		}
		time.Sleep(10 * time.Minute)
	})
}
