package ephemeral

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// TestRoomIsMadeAboveTheFloor, which is above the kubelet's line on a disk that it looks at: what was
// retained minutes ago goes before the kubelet evicts pods, and before pods find no room, the oldest
// first and no more than is needed.
func TestRoomIsMadeAboveTheFloor(t *testing.T) {
	const volumes = 10
	for name, tt := range map[string]struct {
		line lifespan.Line
		free uint64
		want int
	}{
		// From 160 of 1,000 to above the floor, 170: there they are not due any more.
		"shared disk":     {lifespan.DefaultLine, 160, 3},
		"disk of its own": {lifespan.Line{}, 160, 0},
		// From 40 of 1,000 to above the floor, 50.
		"a full one of its own": {lifespan.Line{}, 40, 3},
		"another resource":      {lifespan.Line{Inodes: lifespan.DefaultLine.Inodes}, 160, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.line = tt.line
				for i := range volumes {
					h.retained("pod", numbered(i), time.Duration(volumes-i)*time.Minute, testLifespan)
				}
				h.start()
				time.Sleep(time.Second)
				h.disk.set(tt.free, nil)
				h.records.fail(func(changes []volume.Change) error {
					for _, change := range changes {
						if change.Record != nil && change.Record.Phase == volume.Deleting {
							h.disk.set(h.disk.free+5, nil)
						}
					}
					return nil
				})
				time.Sleep(time.Minute)
				for i := range volumes {
					if got, want := h.hasMarker("pod", numbered(i)), i >= tt.want; got != want {
						t.Errorf("volume %d is there: %t, want %t", i, got, want)
					}
				}
				h.records.fail(nil)
				h.stop()
			})
		})
	}
}

// TestFullDiskWithNothingRetained: files that are not Katbox's keep the disk below the floor. It is
// measured each second, and no more, and calls go on.
func TestFullDiskWithNothingRetained(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		measured := func() int {
			h.disk.mu.Lock()
			defer h.disk.mu.Unlock()
			return h.disk.measured
		}
		h.publish()
		before := measured()
		time.Sleep(6*testInterval + time.Second)
		if n := measured() - before; n != 6 {
			t.Errorf("measured %d times in six intervals without pressure", n)
		}
		h.disk.set(10, nil)
		time.Sleep(testInterval)
		before = measured()
		time.Sleep(60*time.Second + 500*time.Millisecond)
		if n := measured() - before; n < 60 || n > 61 {
			t.Errorf("measured %d times in a minute under pressure, want each second", n)
		}
		h.unpublish()
		synctest.Wait() // it makes room, and is gone
		h.publish()
	})
}

// TestLineInTheMetrics: the marks of a disk that the kubelet looks at.
func TestLineInTheMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.line = lifespan.DefaultLine
		h.disk.inodes, h.disk.freeInodes = 10_000, 10_000
		h.start()
		h.wantMetrics("at the start", nil, metricstest.Values{
			`katbox_kubelet_line_bytes`: 150, `katbox_filesystem_floor_bytes`: 170, `katbox_filesystem_headroom_bytes`: 270,
			`katbox_kubelet_line_inodes`: 500, `katbox_filesystem_floor_inodes`: 700, `katbox_filesystem_headroom_inodes`: 1700,
		})
		h.stop()
	})
}

// retentionTest is retention whose peers do what the test says.
type retentionTest struct {
	root      *actor.RootContext
	retention *actor.PID
	evicted   *list[volume.ID]
	// asked has an entry for each question to the disk.
	asked *list[struct{}]
}

// withRetention runs a test with sleeping volumes that take 100 blocks each, the oldest first. The
// volumes from number unmeasured on are of an unknown size.
func withRetention(t *testing.T, volumes, unmeasured int, test func(q retentionTest)) {
	const blocks, block = 100, 512
	synctest.Test(t, func(t *testing.T) {
		withQueue(t, retained.Index{}, func(index *retained.Index) {
			for i := range volumes {
				record := volume.Record{ID: numbered(i), Pod: testPod}.Retain(time.Now().Add(time.Duration(i-volumes)*time.Minute), testLifespan)
				index.Put(record)
				if i < unmeasured {
					index.Measured(record.ID, record.Unpublished, volume.Size{Bytes: blocks * block, Inodes: 1})
				}
			}
		}, test)
	})
}

// withQueue runs a test with a queue that fill fills.
func withQueue(t *testing.T, index retained.Index, fill func(*retained.Index), test func(q retentionTest)) {
	t.Helper()
	system := quietSystem()
	q := retentionTest{root: system.Root, evicted: &list[volume.ID]{}, asked: &list[struct{}]{}}
	fill(&index)
	sleeping := newTestRetention(&index, true, metrics.New("test", ""))
	sleeping.delete = func(chosen retained.Known, _ *messages.DeleteVolume) { q.evicted.add(chosen.ID) }
	sleeping.measureDisk = func() { q.asked.add(struct{}{}) }
	q.retention = spawnRetention(t, system, sleeping)
	test(q)
	system.Root.Stop(q.retention)
	system.Shutdown()
	time.Sleep(2 * time.Second) // the library's dead letter throttle
}

// measured is a measurement at the floor: the room of that number of volumes is lacking. It answers
// the last question if answers is true.
func (q retentionTest) measured(lacking float64, answers bool) {
	m := &messages.Pressure{Factor: 0, Lacking: volume.Size{Bytes: int64(lacking * 100 * 512)}}
	m.Answers = answers && len(q.asked.get()) > 0
	q.root.Send(q.retention, m)
	synctest.Wait()
}

func (q retentionTest) want(t *testing.T, when string, evicted, asked int) {
	t.Helper()
	synctest.Wait()
	var want []volume.ID
	for i := range evicted {
		want = append(want, numbered(i))
	}
	if got := q.evicted.get(); !slices.Equal(got, want) {
		t.Errorf("%s: %v are gone, want the %d oldest", when, got, evicted)
	}
	if got := len(q.asked.get()); got != asked {
		t.Errorf("%s: a measurement was asked for %d times, want %d", when, got, asked)
	}
}

// over ends the deletions from the given number on.
func (q retentionTest) over(from int) {
	for _, id := range q.evicted.get()[from:] {
		q.root.Send(q.retention, &deletionEnded{id})
	}
	synctest.Wait()
}

// TestBatches: as many go at once as their sizes make up for, and few until they have made room.
func TestBatches(t *testing.T) {
	for name, tt := range map[string]struct {
		lacking float64
		want    int
	}{
		"nothing is lacking: one, as its time is over": {0, 1},
		"part of one":   {0.5, 1},
		"just one":      {1, 1},
		"more than one": {1.5, 2},
		// It is not known yet whether that makes room.
		"many": {7, 3},
		"all":  {100, 3},
	} {
		t.Run(name, func(t *testing.T) {
			withRetention(t, 20, 20, func(q retentionTest) {
				q.measured(tt.lacking, false)
				q.want(t, "what an earlier process deleted is waited for", 0, 1)
				q.measured(tt.lacking, true)
				q.want(t, "measured", tt.want, 1)
				q.over(0)
				q.want(t, "deleted", tt.want, 1+min(1, 20-tt.want))
			})
		})
	}
}

// TestBatchesGrowWhileErasingIsSlow: what is lacking grows, and none of what was deleted is erased.
// No more goes than makes up for it, and no more than a part of what is retained.
func TestBatchesGrowWhileErasingIsSlow(t *testing.T) {
	const volumes, most = 99, 11
	withRetention(t, volumes, volumes, func(q retentionTest) {
		q.measured(2, false)
		q.measured(2, true)
		for lacking := 2; lacking < 40; lacking += 3 {
			before := len(q.evicted.get())
			q.measured(float64(lacking), false)
			if got := len(q.evicted.get()); got != min(lacking, most) {
				t.Errorf("%d are gone with the room of %d lacking", got, lacking)
			}
			q.over(before)
		}
	})
}

// TestUnknownSizesGoOneByOne, each once the one before is erased; or, where less and less is free
// meanwhile, one at each measurement.
func TestUnknownSizesGoOneByOne(t *testing.T) {
	withRetention(t, 80, 0, func(q retentionTest) {
		q.measured(5, false)
		q.measured(5, true)
		q.want(t, "the first", 1, 1)
		q.over(0)
		q.want(t, "it is deleted", 1, 2)
		q.measured(4, false)
		q.want(t, "space comes free, and it is not erased yet", 1, 2)
		q.measured(3, true)
		q.want(t, "it is erased", 2, 2)
		q.over(1)
		q.want(t, "the next one is deleted", 2, 3)
		for i := range 5 {
			q.measured(4+float64(i), false)
			q.want(t, "no space comes free", 3+i, 3)
			q.over(2 + i)
		}
	})
}
