package ephemeral

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/messages"
)

// archiveTerms are those of a pod of whose volume the archive gets a copy if it fails.
var archiveTerms = volume.Terms{Lifespan: 6 * time.Hour, LifespanSucceeded: 6 * time.Hour, Archive: volume.ArchiveOnFailure}

// sealed is nightly with the seal of a gateway.
func sealed() volume.Owner {
	o := nightly
	o.Seal = "seal"
	return o
}

// fails retains the volume of a pod that has failed.
func (h *testNode) fails() {
	h.t.Helper()
	h.publishOn(archiveTerms)
	h.writeMarker(testPod, testID)
	h.own(sealed())
	h.end(volume.Failed)
	h.unpublish()
	synctest.Wait()
}

// wantToArchive checks which volume is archived next.
func (h *testNode) wantToArchive(when string, want volume.ID) {
	h.t.Helper()
	w, err := h.node.ToArchive(h.t.Context(), nil, nil)
	if err != nil || w.Next != want || (w.Volumes > 0) != (want != "") {
		h.t.Errorf("%s: %+v, %v, want %q", when, w, err, want)
	}
}

// copied begins to read the test node's volume for the archive.
func (h *testNode) copied() (reading *files.Reading, archived func(time.Time) error) {
	h.t.Helper()
	reading, note, err := h.node.ReadToArchive(h.t.Context(), testID)
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	return reading, func(until time.Time) error { return note(h.t.Context(), until) }
}

// withArchive is withNode with a count of how often there was news for the archive.
func withArchive(t *testing.T, test func(t *testing.T, h *testNode, news *int)) {
	synctest.Test(t, func(t *testing.T) {
		h, news := newTestNode(t), 0
		h.toArchive = func() { news++ }
		h.start()
		test(t, h, &news)
		h.stop()
	})
}

// TestArchived: a volume waits once its pod has failed, until a copy is recorded, which a restart does not forget. Its tombstone
// says until when the copy is kept.
func TestArchived(t *testing.T) {
	withArchive(t, func(t *testing.T, h *testNode, news *int) {
		h.fails()
		if *news == 0 {
			t.Error("nobody learns that a volume is to be archived")
		}
		h.wantToArchive("it has failed", testID)
		h.wantOwner(sealed(), sealed())
		h.restart()
		h.wantToArchive("after a restart", testID)
		h.wantOwner(sealed(), sealed())
		until := time.Now().Add(100 * time.Hour)
		reading, archived := h.copied()
		if err := archived(until); err != nil {
			t.Fatal(err)
		}
		reading.Close()
		h.wantToArchive("it is archived", "")
		h.wantOwner(nightly, nightly)
		h.restart()
		h.wantToArchive("archived, and after a restart", "")
		want := time.Unix(until.Unix()/3600*3600, 0)
		if r, _ := h.records.get(testID); !r.ArchivedUntil.Equal(want) {
			t.Errorf("archived until %v on disk, want %v", r.ArchivedUntil, want)
		}
		time.Sleep(7 * time.Hour)
		synctest.Wait()
		if stones := h.records.tombstones(); len(stones) != 1 || !stones[0].Record.ArchivedUntil.Equal(want) {
			t.Errorf("%+v, want one that is archived until %v", stones, want)
		}
	})
}

// TestOthersAreNotArchived: of a pod that succeeded, of one whose owner nobody knows, and without terms that want it.
func TestOthersAreNotArchived(t *testing.T) {
	for name, begin := range map[string]func(h *testNode){
		"succeeded": func(h *testNode) {
			h.publishOn(archiveTerms)
			h.own(sealed())
			h.end(volume.Succeeded)
		},
		"without an owner": func(h *testNode) {
			h.publishOn(archiveTerms)
			h.end(volume.Failed)
		},
		"never": func(h *testNode) {
			h.publishOn(testTerms)
			h.own(sealed())
			h.end(volume.Failed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withArchive(t, func(t *testing.T, h *testNode, news *int) {
				begin(h)
				h.unpublish()
				synctest.Wait()
				h.wantToArchive(name, "")
				if *news > 0 {
					t.Error("there is news for the archive")
				}
			})
		})
	}
}

// TestOutcomeThatIsLate: a volume waits a minute for its outcome, and is archived at once when that comes.
func TestOutcomeThatIsLate(t *testing.T) {
	withArchive(t, func(t *testing.T, h *testNode, news *int) {
		h.publishOn(archiveTerms)
		h.writeMarker(testPod, testID)
		h.own(sealed())
		h.unpublish()
		synctest.Wait()
		w, err := h.node.ToArchive(t.Context(), nil, nil)
		if err != nil || w.Next != "" || w.Volumes != 1 || w.Later <= 0 || w.Later > time.Minute {
			t.Errorf("%+v, %v, want one that waits for at most a minute", w, err)
		}
		before := *news
		h.end(volume.Stopped)
		synctest.Wait()
		h.wantToArchive("stopped", testID)
		if *news == before {
			t.Error("nobody learns of the outcome")
		}
	})
}

// TestArchivedIsNotWhatIsThereNow: a copy of what a pod has used again meanwhile is none, not even once the volume is retained
// anew, and neither is what was read without a permission.
func TestArchivedIsNotWhatIsThereNow(t *testing.T) {
	withArchive(t, func(t *testing.T, h *testNode, _ *int) {
		h.fails()
		until := time.Now().Add(100 * time.Hour)
		reading, archived := h.copied()
		h.publish()
		if err := archived(until); !errors.Is(err, volume.ErrNotRetained) {
			t.Errorf("published again: %v", err)
		}
		h.end(volume.Failed)
		h.unpublish()
		synctest.Wait()
		if err := archived(until); !errors.Is(err, volume.ErrNotRetained) {
			t.Errorf("retained anew: %v", err)
		}
		reading.Close()
		h.wantToArchive("retained anew", testID)
		reading, archived = h.copied()
		reading.Close()
		synctest.Wait()
		if err := archived(until); !errors.Is(err, volume.ErrNotRetained) {
			t.Errorf("after the end of the reading: %v", err)
		}
		h.wantToArchive("after the end of the reading", testID)
		// And what is archived begins anew with the next publish.
		reading, archived = h.copied()
		if err := archived(until); err != nil {
			t.Fatal(err)
		}
		reading.Close()
		h.publish()
		h.own(sealed())
		h.end(volume.Failed)
		h.unpublish()
		synctest.Wait()
		h.wantToArchive("archived, and used again", testID)
	})
}

// TestManyWaitToBeArchived: of many that wait a turn of the supervisor looks at a few, and the answer is about all.
func TestManyWaitToBeArchived(t *testing.T) {
	withArchive(t, func(t *testing.T, h *testNode, _ *int) {
		h.stop()
		const many = 2*archiveSlice + 5
		for i := range many {
			r := volume.Record{ID: numbered(i), Pod: numberedPod(i), Namespace: "ci", PodName: "job", Terms: archiveTerms, Owner: sealed()}
			if i%2 == 1 {
				r.Outcome = volume.Failed
			}
			h.records.put(r.Retain(time.Now().Add(-time.Duration(i)*time.Second), testLifespan))
		}
		h.start()
		w, err := h.node.ToArchive(t.Context(), nil, map[volume.ID]struct{}{numbered(1): {}})
		if err != nil || w.Volumes != many || w.Next != numbered(3) {
			t.Errorf("%+v, %v", w, err)
		}
		part, err := actors.Ask(t.Context(), h.node.Root, h.node.Supervisor(), &messages.NextToArchive{})
		if err != nil || part.Volumes != archiveSlice || part.Next.IsZero() {
			t.Errorf("%+v, %v", part, err)
		}
	})
}
