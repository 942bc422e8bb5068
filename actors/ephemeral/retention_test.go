package ephemeral

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/retained"
	"github.com/katbox/katbox/messages"
)

// TestExpiryKeepsDeadlinesAcrossARestart: a restart neither hastens nor delays.
func TestExpiryKeepsDeadlinesAcrossARestart(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		began := time.Now()
		for range 10 {
			time.Sleep(time.Hour)
			h.restart()
		}
		time.Sleep(testLifespan - time.Since(began) - time.Second)
		h.wantMarker("a second before the deadline")
		time.Sleep(time.Second)
		h.wantGone(testPod, testID)
	})
}

func TestManyVolumesExpireAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range 50 {
			h.retained("pod", numbered(i), 0, time.Hour)
		}
		h.start()
		time.Sleep(time.Hour)
		for i := range 50 {
			h.wantGone("pod", numbered(i))
		}
		h.stop()
	})
}

func TestPressureTakesTheOldestAndNoMoreThanItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range 5 {
			h.retained("pod", numbered(i), time.Duration(10-i)*time.Hour, testLifespan)
		}
		h.start()
		for i := range 5 {
			if !h.hasMarker("pod", numbered(i)) {
				t.Fatalf("volume %d is gone without pressure", i)
			}
		}
		// Between headroom and floor: lifespan 6 h ends for those of 10, 9, 8, 7 and 6 hours. The second
		// deletion makes room enough.
		h.disk.set(75, nil)
		var deleted atomic.Int64
		h.records.fail(func(changes []volume.Change) error {
			for _, change := range changes {
				if change.Record != nil && change.Record.Phase == volume.Deleting {
					if deleted.Add(1) == 2 {
						h.disk.set(100, nil)
					}
				}
			}
			return nil
		})
		time.Sleep(time.Minute)
		for i := range 5 {
			if got, want := h.hasMarker("pod", numbered(i)), i >= 2; got != want {
				t.Errorf("volume %d is there: %t, want %t", i, got, want)
			}
		}
		h.records.fail(nil)
		h.stop()
	})
}

// TestPressureGoesByItsOwnOrder: the volume that pressure makes due is not the one whose whole
// lifespan is over first.
func TestPressureGoesByItsOwnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("pod", "csi-old", 10*time.Hour, 100*time.Hour)
		h.retained("pod", "csi-short", time.Hour, 2*time.Hour)
		h.start()
		h.disk.set(0, nil)
		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record != nil && changes[0].Record.Phase == volume.Deleting {
				h.disk.set(100, nil)
			}
			return nil
		})
		time.Sleep(time.Minute)
		if h.hasMarker("pod", "csi-old") || !h.hasMarker("pod", "csi-short") {
			t.Error("want the older volume to be gone, and no other")
		}
		h.records.fail(nil)
		h.stop()
	})
}

func TestPressureSparesPublishedVolumes(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.disk.set(0, nil)
		time.Sleep(time.Hour)
		h.wantMarker("with no space free")
		h.unpublish()
		time.Sleep(time.Minute)
		h.wantGone(testPod, testID)
	})
}

func TestDiskThatCannotBeMeasuredIsNoPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.disk.set(0, unix.EIO)
		h.retained("pod", testID, time.Hour, testLifespan)
		h.start()
		time.Sleep(time.Hour)
		if !h.hasMarker("pod", testID) {
			t.Error("deleted early though nothing is known of the disk")
		}
		h.stop()
	})
}

func TestDeletionOnAFullDiskNeedsNoRecord(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record != nil {
				return unix.ENOSPC
			}
			return nil
		})
		time.Sleep(testLifespan)
		h.wantGone(testPod, testID)
	})
}

// TestDeletionThatFailsIsTriedAgain: neither lost nor hot.
func TestDeletionThatFailsIsTriedAgain(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		var tries atomic.Int64
		h.records.fail(func([]volume.Change) error { tries.Add(1); return unix.EIO })
		time.Sleep(testLifespan + time.Hour)
		h.wantMarker("while its deletion cannot be recorded")
		if tries.Load() < 3 || tries.Load() > 100 {
			t.Errorf("tried %d times within an hour", tries.Load())
		}
		h.records.fail(nil)
		time.Sleep(deleteBackoff.Longest)
		h.wantGone(testPod, testID)
	})
}

func TestPublishSavesAVolumeWhoseDeletionFails(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		time.Sleep(testLifespan + time.Second)
		h.records.fail(nil)
		h.publish()
		time.Sleep(2 * testLifespan)
		h.wantMarker("published again just before it would have been deleted")
	})
}

func TestWhatIsNotADataDirectoryIsSetAside(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		outside := filepath.Join(h.root, "outside")
		if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		h.publish()
		h.unpublish()
		if err := errors.Join(os.Remove(h.data(testPod, testID)), os.Symlink(outside, h.data(testPod, testID))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * testLifespan)
		if _, err := os.Stat(outside); err != nil {
			t.Error(err)
		}
		h.wantPhase(testID, volume.Deleting)
		if err := os.Remove(h.data(testPod, testID)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(deleteBackoff.Longest)
		h.wantGone(testPod, testID)
	})
}

func TestOrphansAreAdoptedAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range 3 * orphanBatch / 2 {
			pod := numberedPod(i)
			if _, err := h.scratch.Create(volume.Place{Pod: pod, ID: numbered(i)}); err != nil {
				t.Fatal(err)
			}
			h.writeMarker(pod, numbered(i))
		}
		h.retained("pod", "csi-known", time.Hour, testLifespan)
		h.start()
		known := h.wantPhase("csi-known", volume.Retained)
		if age := time.Since(known.Unpublished); age != time.Hour {
			t.Errorf("a known volume was adopted anew: retained for %v", age)
		}
		for i := range 3 * orphanBatch / 2 {
			h.wantPhase(numbered(i), volume.Retained)
		}
		time.Sleep(testLifespan)
		for i := range 3 * orphanBatch / 2 {
			h.wantGone(numberedPod(i), numbered(i))
		}
		h.stop()
	})
}

func TestOrphansAreFoundLater(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		if _, err := h.scratch.Create(volume.Place{Pod: gonePod, ID: numbered(1)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(orphanInterval)
		h.wantPhase(numbered(1), volume.Retained)
		h.wantPhase(testID, volume.Publishing)
	})
}

// TestOrphanIsPublishedMeanwhile: a directory that was found without a record, and that a pod gets before it is adopted, is
// that pod's. Nothing is wrong, so nothing complains.
func TestOrphanIsPublishedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newTestNode(t), &lines{t: t}
		h.log = log.logger()
		h.start()
		if _, err := h.scratch.Create(volume.Place{Pod: testPod, ID: testID}); err != nil {
			t.Fatal(err)
		}
		h.table.takes(2 * time.Second) // it is read between the search and the adoption
		time.Sleep(orphanInterval + time.Second)
		h.mounter.mu.Lock()
		h.mounter.onMount = func(string) error { time.Sleep(10 * time.Second); return nil }
		h.mounter.mu.Unlock()
		h.publish()
		h.wantPhase(testID, volume.Publishing)
		if complaints := log.with(adoptionFailed); len(complaints) > 0 {
			t.Errorf("the log has %v", complaints)
		}
		h.stop()
	})
}

// TestForeignDirectoriesAreLeftAlone: whatever lies where data directories do, only what a kubelet
// has named is taken for one; what a record knows is a volume anyway.
func TestForeignDirectoriesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		foreign := map[volume.PodUID]volume.ID{"photos": "2024", "src": numbered(1), numberedPod(2): "base", numberedPod(3): "csi-volume"}
		for pod, id := range foreign {
			h.orphan(pod, id)
		}
		h.retained("pod", "known", 0, testLifespan)
		h.start()
		h.disk.set(0, nil)
		time.Sleep(2 * testLifespan)
		for pod, id := range foreign {
			if !h.hasMarker(pod, id) {
				t.Errorf("%s/%s is gone", pod, id)
			}
		}
		h.wantGone("pod", "known")
		if records := h.records.all(); len(records) != 0 {
			t.Errorf("adopted: %+v", records)
		}
		h.stop()
	})
}

// TestLaterSearchesForOrphansRest: of however many directories, a node at rest does not notice that
// they are searched.
func TestLaterSearchesForOrphansRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.start()
		for i := range 3 * orphanBatch / 2 {
			if _, err := h.scratch.Create(volume.Place{Pod: numberedPod(i), ID: numbered(i)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(orphanInterval)
		synctest.Wait()
		if n := len(h.records.all()); n != orphanBatch {
			t.Errorf("%d were found before the first rest, want %d", n, orphanBatch)
		}
		time.Sleep(orphanRest)
		synctest.Wait()
		if n := len(h.records.all()); n != 3*orphanBatch/2 {
			t.Errorf("%d were found after it, want all %d", n, 3*orphanBatch/2)
		}
		h.stop()
	})
}

func TestInterruptedDeletionIsFinishedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for _, id := range []volume.ID{"csi-recorded", "csi-moved"} {
			h.retained("pod", id, time.Minute, testLifespan)
			record, _ := h.records.get(id)
			record.Phase = volume.Deleting
			h.records.put(record)
		}
		if _, err := h.scratch.Discard(volume.Place{Pod: "pod", ID: "csi-moved"}); err != nil {
			t.Fatal(err)
		}
		h.start()
		h.wantGone("pod", "csi-recorded")
		h.wantGone("pod", "csi-moved")
		if left, err := h.scratch.TrashSize(); err != nil || left != 0 {
			t.Errorf("left in the trash: %d, %v", left, err)
		}
		h.stop()
	})
}

// TestWokenDeletionGoesOn: a call for a volume whose deletion was interrupted does not keep it from
// being deleted.
func TestWokenDeletionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 4 * maxDeletions
		for i := range volumes {
			h.retained("pod", numbered(i), time.Minute, testLifespan)
			record, _ := h.records.get(numbered(i))
			record.Phase = volume.Deleting
			h.records.put(record)
		}
		var failing atomic.Bool
		failing.Store(true)
		h.records.fail(func(changes []volume.Change) error {
			if failing.Load() {
				return unix.EIO
			}
			return nil
		})
		h.start()
		for i := range volumes {
			_ = h.node.Unpublish(t.Context(), numbered(i), h.target("pod", "mount"))
		}
		failing.Store(false)
		time.Sleep(time.Hour)
		for i := range volumes {
			h.wantGone("pod", numbered(i))
		}
		h.stop()
	})
}

// TestUnpublishDoesNotWaitForADeletionThatItWakes: a volume that could not be deleted is asleep, and
// a call for it comes before the next try.
func TestUnpublishDoesNotWaitForADeletionThatItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.retained("pod", testID, time.Minute, testLifespan)
		record, _ := h.records.get(testID)
		record.Phase = volume.Deleting
		h.records.put(record)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		h.start()
		h.records.fail(nil)
		h.table.takes(time.Minute)
		began := time.Now()
		h.unpublish()
		if took := time.Since(began); took > 0 {
			t.Errorf("answered after %s", took)
		}
		time.Sleep(2 * time.Minute)
		h.wantGone("pod", testID)
		h.stop()
	})
}

func TestSpaceThatComesFreeLateSparesTheNextVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range 3 {
			h.retained("pod", numbered(i), time.Duration(3-i)*time.Hour, testLifespan)
		}
		h.start()
		h.disk.set(0, nil)
		h.records.fail(func(changes []volume.Change) error {
			// Before the data is moved to the trash and erased: then a measurement can show it.
			if record := changes[0].Record; record != nil && record.Phase == volume.Deleting {
				h.disk.mu.Lock()
				h.disk.late = 100
				h.disk.mu.Unlock()
			}
			return nil
		})
		time.Sleep(time.Minute)
		for i := range 3 {
			if got, want := h.hasMarker("pod", numbered(i)), i > 0; got != want {
				t.Errorf("volume %d is there: %t, want %t", i, got, want)
			}
		}
		h.stop()
	})
}

// TestEraseHoldsUpNothing: once its data is in the trash, a volume's ID is free.
func TestEraseHoldsUpNothing(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.writeMarker(testPod, testID)
		h.unpublish()
		time.Sleep(testLifespan)
		synctest.Wait()
		if _, known := h.records.get(testID); known {
			t.Error("still known while its trash is erased")
		}
		h.publish()
		if h.hasMarker(testPod, testID) {
			t.Error("the new volume has the old one's data")
		}
	})
}

// TestACallThatFindsNoRoomMakesRoom, though the disk says that it has some: each that is refused
// deletes the oldest volume, except where no volume may go early.
func TestACallThatFindsNoRoomMakesRoom(t *testing.T) {
	const volumes, calls = 5, 2
	for headroom, want := range map[float64]int{0.1: volumes - calls, 0: volumes} {
		t.Run(fmt.Sprint(headroom), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.headroom = headroom
				for i := range volumes {
					h.retained("pod", numbered(i), time.Duration(volumes-i)*time.Hour, testLifespan)
				}
				h.start()
				h.noRoomToPublish()
				for range calls {
					wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrNoSpace)
					time.Sleep(time.Minute)
				}
				for i := range volumes {
					if got, want := h.hasMarker("pod", numbered(i)), i >= volumes-want; got != want {
						t.Errorf("volume %d is there: %t, want %t", i, got, want)
					}
				}
				h.stop()
			})
		})
	}
}

// TestRoomThatNoCallWantsAnyMore: a call that found none while nothing was retained that could go costs
// no later volume its time.
func TestRoomThatNoCallWantsAnyMore(t *testing.T) {
	for name, pinned := range map[string]bool{"nothing is retained": false, "a pinned volume is": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				if pinned {
					h.retained("pod", "csi-pinned", time.Hour, testLifespan)
					h.change("csi-pinned", func(r *volume.Record) { r.Hold = volume.Hold{Kind: volume.Pinned, For: 10 * testLifespan} })
				}
				h.start()
				h.records.fail(func([]volume.Change) error { return unix.ENOSPC })
				wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrNoSpace)
				time.Sleep(time.Hour)
				h.records.fail(nil)
				h.publish()
				h.writeMarker(testPod, testID)
				h.unpublish()
				time.Sleep(testLifespan - time.Second)
				h.wantMarker("just before its deadline")
				if h.hasMarker("pod", "csi-pinned") != pinned {
					t.Error("the pinned volume is gone")
				}
				h.stop()
			})
		})
	}
}

// TestEarlyDeletionThatFails is not made up for when the pressure is gone.
func TestEarlyDeletionThatFails(t *testing.T) {
	const volumes = 5
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		for i := range volumes {
			h.retained("pod", numbered(i), time.Hour, testLifespan)
		}
		h.start()
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		h.disk.set(1, nil)
		time.Sleep(time.Minute)
		h.disk.set(1000, nil)
		time.Sleep(time.Minute)
		h.records.fail(nil)
		time.Sleep(testLifespan - 2*time.Hour)
		for i := range volumes {
			if !h.hasMarker("pod", numbered(i)) {
				t.Errorf("volume %d went early, without pressure", i)
			}
		}
		time.Sleep(2 * time.Hour)
		for i := range volumes {
			h.wantGone("pod", numbered(i))
		}
		h.stop()
	})
}

// TestOneTimerForTheNextDeadline: a message that overtakes the timer's has the next one set, and
// the timer's own, which comes then, must not add another.
func TestOneTimerForTheNextDeadline(t *testing.T) {
	const rounds = 10
	synctest.Test(t, func(t *testing.T) {
		system := quietSystem()
		pid := system.NewLocalPID(retentionName)
		var index retained.Index
		for i := range rounds + 1 {
			index.Put(volume.Record{ID: numbered(i), Pod: testPod}.Retain(time.Now().Add(time.Duration(i)*time.Minute), testLifespan))
		}
		overtakes := make(chan struct{})
		ticks := 0
		gate := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				switch envelope.Message.(type) {
				case *messages.Pressure:
					<-overtakes
				case *deletionDue:
					ticks++
				}
				next(c, envelope)
			}
		})
		sleeping := newTestRetention(&index, false, metrics.New("test", ""))
		sleeping.delete = func(r retained.Known, _ *messages.DeleteVolume) { system.Root.Send(pid, &deletionEnded{r.ID}) }
		spawnRetention(t, system, sleeping, gate)
		time.Sleep(testLifespan - time.Second)
		for range rounds {
			system.Root.Send(pid, &messages.Pressure{Factor: 1})
			time.Sleep(2 * time.Second)
			overtakes <- struct{}{}
			time.Sleep(58 * time.Second)
		}
		synctest.Wait()
		if ticks != rounds {
			t.Errorf("the timer ticked %d times for %d volumes", ticks, rounds)
		}
		system.Root.Stop(pid)
		system.Shutdown()
		time.Sleep(2 * time.Second) // the library's dead letter throttle
	})
}

// TestShorterLifespanIsDueFirst: the timer is set anew for who comes later and goes before, also
// when nothing else happens.
func TestShorterLifespanIsDueFirst(t *testing.T) {
	withSizes(t, &fakeUsage{}, 1, actors.MaxWorkers, func(s sizesTest) {
		s.root.Send(s.retention, &putToSleep{volume.Record{ID: testID, Pod: testPod}.Retain(time.Now(), time.Minute)})
		time.Sleep(time.Minute)
		synctest.Wait()
		if evicted := s.evicted.get(); !slices.Equal(evicted, []volume.ID{testID}) {
			t.Errorf("%v are gone after a minute, want %s", evicted, testID)
		}
		time.Sleep(testLifespan)
	})
}
