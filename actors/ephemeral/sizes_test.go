package ephemeral

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/internal/node/scratch"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// fakeUsage has volumes that all take fakeBytes, and a number of batches of names each; or only the
// large one, when there is one.
type fakeUsage struct {
	batches int
	large   volume.ID
	// hanging: the first measurement hangs.
	hanging bool
	// age is for how long the volumes have been retained before the start.
	age time.Duration

	mu sync.Mutex
	// hangs, when set, keeps measurements from ending until it is closed.
	hangs chan struct{}
	err   error
	asked []volume.ID
	ended []time.Time
}

const fakeBytes = 4096

func (g *fakeUsage) Usage(ctx context.Context, p volume.Place, rest scratch.Pace) (bytes, inodes int64, err error) {
	g.mu.Lock()
	g.asked = append(g.asked, p.ID)
	hangs, err := g.hangs, g.err
	g.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	for i := 0; i < g.batches && (g.large == "" || g.large == p.ID); i++ {
		if err := rest(ctx, pace.FullBatch); err != nil {
			return 0, 0, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = append(g.ended, time.Now())
	if err != nil {
		return 0, 0, err
	}
	return fakeBytes, 1, nil
}

func (g *fakeUsage) set(hangs chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hangs, g.err = hangs, err
}

func (g *fakeUsage) measured() []volume.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

// sizesTest is retention and a sizes actor, and nothing else.
type sizesTest struct {
	t         *testing.T
	ground    *fakeUsage
	calls     *pace.Calls
	workers   *actors.Workers
	metrics   *metrics.Metrics
	root      *actor.RootContext
	retention *actor.PID
	// evicted are the volumes whose deletion was ordered.
	evicted *list[volume.ID]
}

// withSizes runs a test in a bubble with volumes that are asleep at the start.
func withSizes(t *testing.T, g *fakeUsage, asleep int, limit int, test func(s sizesTest)) {
	synctest.Test(t, func(t *testing.T) {
		if g.hanging {
			g.hangs = make(chan struct{}) // of this bubble
		}
		system := quietSystem()
		ctx, cancel := context.WithCancel(t.Context())
		s := sizesTest{
			t: t, ground: g, calls: pace.NewCalls(), workers: actors.NewWorkers(limit), metrics: metrics.New("test", ""), root: system.Root,
			retention: system.NewLocalPID(retentionName), evicted: &list[volume.ID]{},
		}
		time.Sleep(time.Second) // no call ran just now
		measuring := &sizes{
			environment: &environment{System: &actors.System{Workers: s.workers}, ctx: ctx, calls: s.calls}, usage: g, supervisor: s.retention,
		}
		asked := system.Root.Spawn(measuring.props())
		var index retained.Index
		for i := range asleep {
			index.Put(volume.Record{ID: numbered(i), Pod: testPod}.Retain(time.Now(), testLifespan))
		}
		time.Sleep(g.age)
		sleeping := newTestRetention(&index, false, s.metrics)
		sleeping.delete = func(r retained.Known, _ *messages.DeleteVolume) {
			s.evicted.add(r.ID)
			s.root.Send(s.retention, &deletionEnded{r.ID})
		}
		sleeping.measureSizes = func(m *messages.MeasureSizes) { s.root.Send(asked, m) }
		spawnRetention(t, system, sleeping)
		synctest.Wait()
		test(s)
		cancel()
		if err := s.workers.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, pid := range []*actor.PID{s.retention, asked} {
			system.Root.Stop(pid)
		}
		system.Shutdown()
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// retain puts a volume to sleep that was unpublished just now.
func (s sizesTest) retain(id volume.ID) {
	s.root.Send(s.retention, &putToSleep{volume.Record{ID: id, Pod: testPod}.Retain(time.Now(), testLifespan)})
	synctest.Wait()
}

// wake takes a volume out.
func (s sizesTest) wake(id volume.ID) {
	s.root.Send(s.retention, &takeOut{id})
	synctest.Wait()
}

// want checks what the metrics tell, in volumes.
func (s sizesTest) want(when string, measured, unmeasured int) {
	s.t.Helper()
	synctest.Wait()
	wantRetained(s.t, s.metrics, when, int64(measured)*fakeBytes, unmeasured)
}

func wantRetained(t *testing.T, m *metrics.Metrics, when string, bytes int64, unmeasured int) {
	t.Helper()
	metricstest.Of(t, m).Want(t, when, metricstest.Values{
		"katbox_retained_bytes": float64(bytes), "katbox_retained_unmeasured_volumes": float64(unmeasured),
	})
}

func TestMeasurementMeasuresEachVolumeOnce(t *testing.T) {
	const asleep = 1000
	g := &fakeUsage{}
	withSizes(t, g, asleep, actors.MaxWorkers, func(s sizesTest) {
		time.Sleep(time.Hour)
		s.want("at rest", asleep, 0)
		s.retain("csi-new")
		s.want("one more", asleep+1, 0)
		s.wake(numbered(0))
		s.want("one less", asleep, 0)
		all := g.measured()
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != asleep+1 || len(all) != n {
			t.Errorf("%d measurements of %d volumes", len(all), n)
		}
		time.Sleep(testLifespan)
		s.want("at the end", 0, 0)
	})
}

// TestMeasurementTakesWhatIsHotFirst: what was just unpublished need not be read from the disk. It waits
// for one question at most.
func TestMeasurementTakesWhatIsHotFirst(t *testing.T) {
	const asleep = 10 * maxSizes
	g := &fakeUsage{hanging: true}
	withSizes(t, g, asleep, actors.MaxWorkers, func(s sizesTest) {
		s.retain("csi-new")
		s.want("hanging", 0, asleep+1)
		if n := len(g.measured()); n != 1 {
			t.Errorf("%d are measured at the same time", n)
		}
		close(g.hangs)
		time.Sleep(time.Hour)
		s.want("at rest", asleep+1, 0)
		if all := g.measured(); all[maxSizes] != "csi-new" {
			t.Errorf("measured in the order %v", all)
		}
	})
}

// TestMeasurementOfTheBacklogIsNotNoticed: what the start has found is measured slowly, and what is
// retained meanwhile all the same at once.
func TestMeasurementOfTheBacklogIsNotNoticed(t *testing.T) {
	const rounds = 10
	const asleep = rounds * maxBacklogSizes
	g := &fakeUsage{age: time.Second}
	withSizes(t, g, asleep, actors.MaxWorkers, func(s sizesTest) {
		s.want("at the start", maxBacklogSizes, asleep-maxBacklogSizes)
		time.Sleep(backlogRest - time.Millisecond)
		s.want("before the rest is over", maxBacklogSizes, asleep-maxBacklogSizes)
		for i := range 2 * maxSizes {
			s.retain(numbered(asleep + i))
		}
		time.Sleep(2 * time.Millisecond)
		s.want("then those that are new", maxBacklogSizes+maxSizes, asleep-maxBacklogSizes+maxSizes)
		time.Sleep(sizesRest)
		s.want("and the others of them", maxBacklogSizes+2*maxSizes, asleep-maxBacklogSizes)
		time.Sleep(sizesRest)
		s.want("then the backlog", 2*maxBacklogSizes+2*maxSizes, asleep-2*maxBacklogSizes)
		time.Sleep((rounds - 2) * backlogRest)
		s.want("at the end", asleep+2*maxSizes, 0)
		time.Sleep(testLifespan)
	})
}

// TestMeasurementOfALargeVolumeInTheBacklog: what is retained meanwhile does not wait for long rests.
func TestMeasurementOfALargeVolumeInTheBacklog(t *testing.T) {
	const batches = 4000
	g := &fakeUsage{age: time.Second, large: numbered(0), batches: batches}
	withSizes(t, g, 1, actors.MaxWorkers, func(s sizesTest) {
		s.retain("csi-new")
		time.Sleep(backlogRest + batches*sizesRest)
		s.want("both", 2, 0)
	})
}

// TestMeasurementEndsWithARest: after that, too, what was just unpublished comes first, and no one
// waits for a large volume to learn of those before it.
func TestMeasurementEndsWithARest(t *testing.T) {
	const asleep = maxSizes / 2
	large := numbered(asleep - 3)
	g := &fakeUsage{large: large, batches: 2}
	withSizes(t, g, asleep, actors.MaxWorkers, func(s sizesTest) {
		s.want("in the third", 2, asleep-2)
		s.retain("csi-new")
		time.Sleep(time.Hour)
		s.want("at rest", asleep+1, 0)
		if all := g.measured(); len(all) != asleep+1 || all[2] != large || all[3] != "csi-new" {
			t.Errorf("measured in the order %v", all)
		}
	})
}

// TestMeasurementCollects: of volumes that come one by one, the first is measured at once, and those
// after it many at a time.
func TestMeasurementCollects(t *testing.T) {
	g := &fakeUsage{}
	withSizes(t, g, 0, actors.MaxWorkers, func(s sizesTest) {
		s.retain("csi-first")
		s.want("the first", 1, 0)
		s.retain("csi-a")
		time.Sleep(collectSizes / 2)
		s.retain("csi-b")
		s.want("not yet", 1, 2)
		time.Sleep(collectSizes / 2)
		s.want("in time", 3, 0)

		s.retain("csi-gone")
		s.wake("csi-gone")
		for i := range maxSizes - 1 {
			s.retain(numbered(i))
		}
		s.want("too few yet", 3, maxSizes-1)
		s.retain("csi-last")
		s.want("as many as one question has, up to the rest", maxSizes, 3)
		time.Sleep(time.Hour)
		s.retain("csi-late")
		s.want("after a while", 4+maxSizes, 0)
		if slices.Contains(g.measured(), "csi-gone") {
			t.Error("measured what was gone before its turn")
		}
	})
}

// TestMeasurementOfWhatChangesMeanwhile: a volume that is taken out before its turn costs nothing, and
// what was measured of one that was published since does not count.
func TestMeasurementOfWhatChangesMeanwhile(t *testing.T) {
	g := &fakeUsage{hanging: true}
	withSizes(t, g, 0, actors.MaxWorkers, func(s sizesTest) {
		hangs := g.hangs
		s.retain("csi-again")
		s.retain("csi-gone")
		s.wake("csi-gone")
		s.wake("csi-again")
		s.want("taken out", 0, 0)
		time.Sleep(time.Second)
		s.retain("csi-again")
		g.set(make(chan struct{}), nil)
		close(hangs)
		s.want("what was measured is too old", 0, 1)
		close(g.hangs)
		s.want("measured anew", 1, 0)
		if all := g.measured(); !slices.Equal(all, []volume.ID{"csi-again", "csi-again"}) {
			t.Errorf("measured %v", all)
		}
	})
}

// TestMeasurementThatHangsHoldsUpNobody: volumes expire all the same.
func TestMeasurementThatHangsHoldsUpNobody(t *testing.T) {
	const asleep = 10
	g := &fakeUsage{hanging: true}
	withSizes(t, g, asleep, actors.MaxWorkers, func(s sizesTest) {
		time.Sleep(testLifespan)
		s.want("all expired", 0, 0)
		if n := len(s.evicted.get()); n != asleep {
			t.Errorf("%d deletions were ordered, want %d", n, asleep)
		}
		close(g.hangs)
		s.retain("csi-new")
		time.Sleep(collectSizes)
		s.want("one more", 1, 0)
	})
}

func TestMeasurementOfWhatCannotBeMeasured(t *testing.T) {
	g := &fakeUsage{err: unix.EIO}
	withSizes(t, g, 3, actors.MaxWorkers, func(s sizesTest) {
		s.want("failed", 0, 0)
		g.set(nil, nil)
		s.retain("csi-new")
		time.Sleep(time.Hour)
		s.want("one more", 1, 0)
		if n := len(g.measured()); n != 4 {
			t.Errorf("%d measurements, want 4: once is enough", n)
		}
	})
}

// TestMeasurementWithoutAWorker waits for one.
func TestMeasurementWithoutAWorker(t *testing.T) {
	g := &fakeUsage{}
	withSizes(t, g, 0, 1, func(s sizesTest) {
		hangs := make(chan struct{})
		if err := s.workers.Go(func() { <-hangs }); err != nil {
			t.Fatal(err)
		}
		s.retain("csi-a")
		s.retain("csi-b")
		time.Sleep(10 * refusedPause)
		s.want("no worker", 0, 2)
		close(hangs)
		// The second measurement may begin before the worker of the first is free again, and is refused
		// once more then.
		time.Sleep(2 * refusedPause)
		s.want("a worker", 2, 0)
	})
}

// TestMeasurementRests after each batch, and longer while calls run.
func TestMeasurementRests(t *testing.T) {
	const batches = 20
	for name, test := range map[string]struct {
		call bool
		want time.Duration
	}{
		"when no call runs": {false, batches * sizesRest},
		"during a call":     {true, batches * (sizesRest + pace.LongestYield)},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, g := range map[string]struct{ batches, volumes int }{
				"a large volume": {batches, 1},
				"small volumes":  {0, batches*pace.FullBatch/volumeShare + 1},
			} {
				t.Run(kind, func(t *testing.T) {
					ground := &fakeUsage{batches: g.batches}
					withSizes(t, ground, 0, actors.MaxWorkers, func(s sizesTest) {
						if test.call {
							defer s.calls.Begin()()
						}
						began := time.Now()
						for i := range g.volumes {
							s.root.Send(s.retention, &putToSleep{volume.Record{ID: numbered(i), Pod: testPod}.Retain(time.Now(), testLifespan)})
						}
						time.Sleep(time.Hour)
						s.want("at rest", g.volumes, 0)
						if took := slices.MaxFunc(ground.ended, time.Time.Compare).Sub(began); took != test.want {
							t.Errorf("took %s, want %s", took, test.want)
						}
					})
				})
			}
		})
	}
}

// TestMeasurementEndsWithTheDaemon in the middle of a volume, and tells nothing.
func TestMeasurementEndsWithTheDaemon(t *testing.T) {
	g := &fakeUsage{batches: 1000}
	withSizes(t, g, 2, actors.MaxWorkers, func(s sizesTest) { s.want("just begun", 0, 2) })
	if all, ended := g.measured(), len(g.ended); len(all) != 1 || ended != 0 {
		t.Errorf("measured %v, %d to the end", all, ended)
	}
}

// TestRetainedBytes is about real files, from one unpublish over a restart to the end.
func TestRetainedBytes(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		wantRetained(t, h.metrics, "nothing retained", 0, 0)
		h.publish()
		content := []byte(strings.Repeat("x", 100_000))
		if err := os.WriteFile(filepath.Join(h.data(testPod, testID), "file"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantRetained(t, h.metrics, "published", 0, 0)
		h.unpublish()
		synctest.Wait()
		// As du counts.
		want := int64(0)
		for _, path := range []string{"", "file"} {
			var st unix.Stat_t
			if err := unix.Lstat(filepath.Join(h.data(testPod, testID), path), &st); err != nil {
				t.Fatal(err)
			}
			want += 512 * st.Blocks
		}
		wantRetained(t, h.metrics, "retained", want, 0)
		// Doubled.
		h.unpublish()
		time.Sleep(collectSizes)
		synctest.Wait()
		wantRetained(t, h.metrics, "unpublished again", want, 0)
		h.restart()
		wantRetained(t, h.metrics, "after a restart", want, 0)
		time.Sleep(testLifespan)
		synctest.Wait()
		wantRetained(t, h.metrics, "expired", 0, 0)
	})
}

// TestRetainedBytesOfWhatIsGone: somebody has removed it by hand.
func TestRetainedBytesOfWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("pod", testID, time.Minute, testLifespan)
		if err := os.RemoveAll(h.data("pod", testID)); err != nil {
			t.Fatal(err)
		}
		h.start()
		synctest.Wait()
		wantRetained(t, h.metrics, "gone", 0, 0)
		h.stop()
	})
}
