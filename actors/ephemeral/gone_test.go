package ephemeral

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestTombstones: each deletion leaves one, which says why.
func TestTombstones(t *testing.T) {
	free := volume.Size{Bytes: 75}
	for name, tt := range map[string]struct {
		ago  time.Duration
		hold volume.Hold
		act  func(h *testNode)
		want volume.Tombstone
		kept time.Duration
	}{
		"expired": {ago: testLifespan - time.Minute, act: func(*testNode) {},
			want: volume.Tombstone{Reason: volume.Expired}, kept: testLifespan},
		"bytes": {ago: 7 * time.Hour, act: func(h *testNode) { h.disk.set(75, nil) },
			want: volume.Tombstone{Reason: volume.ForBytes, Factor: 0.5, Free: free}, kept: 7 * time.Hour},
		"purged": {ago: time.Hour, act: func(h *testNode) {
			if err := h.node.Purge(h.t.Context(), testID, "ann", "leaked key"); err != nil {
				h.t.Error(err)
			}
		}, want: volume.Tombstone{Reason: volume.Purged, By: "ann", Why: "leaked key"}, kept: time.Hour},
		"purged while pinned": {ago: time.Hour, hold: volume.Hold{Kind: volume.Pinned, For: 99 * time.Hour, By: "bob", Why: "mine"},
			act: func(h *testNode) {
				if err := h.node.Purge(h.t.Context(), testID, "ann", ""); err != nil {
					h.t.Error(err)
				}
			}, want: volume.Tombstone{Reason: volume.Purged, By: "ann"}, kept: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			withLoggedNode(t, func(h *testNode) {
				h.retained(testPod, testID, tt.ago, testLifespan)
				record, _ := h.records.get(testID)
				record.Hold, record.Outcome = tt.hold, volume.Failed
				h.records.put(record)
			}, func(t *testing.T, h *testNode, _ *lines) {
				time.Sleep(10 * time.Second) // its size is measured
				tt.act(h)
				time.Sleep(2 * time.Minute)
				h.wantGone(testPod, testID)
				stones := h.records.tombstones()
				if len(stones) != 1 {
					t.Fatalf("tombstones %+v, want one", stones)
				}
				got := stones[0]
				if got.Kept < tt.kept || got.Kept > tt.kept+2*time.Minute || !got.Gone.Equal(time.Unix(got.Gone.Unix(), 0)) ||
					time.Since(got.Gone) > 3*time.Minute {
					t.Errorf("gone at %v after %v, want after %v", got.Gone, got.Kept, tt.kept)
				}
				if got.Size == (volume.Size{}) {
					t.Error("its size is not known")
				}
				if r := got.Record; r.ID != testID || r.Pod != testPod || r.Outcome != volume.Failed || r.Hold != tt.hold || len(r.Targets) > 0 {
					t.Errorf("record %+v", r)
				}
				tt.want.Record, tt.want.Size, tt.want.Gone, tt.want.Kept = got.Record, got.Size, got.Gone, got.Kept
				if got.Reason != tt.want.Reason || got.Factor != tt.want.Factor || got.Free != tt.want.Free ||
					got.By != tt.want.By || got.Why != tt.want.Why {
					t.Errorf("%+v\nwant %+v", got, tt.want)
				}
			})
		})
	}
}

// TestTombstoneOfAReleasedVolume says who released it.
func TestTombstoneOfAReleasedVolume(t *testing.T) {
	hold := volume.Hold{Kind: volume.Released, For: time.Hour, By: "ann", Why: "done"}
	record := volume.Record{
		ID: testID, Phase: volume.Deleting, Unpublished: time.Now().Add(-2 * time.Hour), Lifespan: testLifespan, Hold: hold,
	}
	released := &task{record: &record, deletion: deletion{reason: volume.ForReleased}}
	if got := released.tombstone(time.Now()); got.Reason != volume.ForReleased || got.By != "ann" || got.Why != "done" {
		t.Errorf("%+v, want who released it", got)
	}
}

// TestTombstoneOfAnInterruptedDeletion: why it began is not known any more.
func TestTombstoneOfAnInterruptedDeletion(t *testing.T) {
	withLoggedNode(t, func(h *testNode) {
		h.retained(testPod, testID, time.Hour, testLifespan)
		record, _ := h.records.get(testID)
		record.Phase = volume.Deleting
		h.records.put(record)
	}, func(t *testing.T, h *testNode, _ *lines) {
		h.wantGone(testPod, testID)
		if stones := h.records.tombstones(); len(stones) != 1 || stones[0].Reason != volume.Interrupted || stones[0].Broken() {
			t.Errorf("tombstones %+v, want one of a deletion that was interrupted", stones)
		}
	})
}

// TestTombstoneComesWithTheLastCommit: as long as the record cannot be removed there is none.
func TestTombstoneComesWithTheLastCommit(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.records.fail(func(changes []volume.Change) error {
			for _, c := range changes {
				if c.Record == nil {
					return unix.EIO
				}
			}
			return nil
		})
		if err := h.node.Purge(t.Context(), testID, "ann", "leaked key"); !errors.Is(err, unix.EIO) {
			t.Fatalf("Purge = %v, want EIO", err)
		}
		h.records.fail(nil)
		time.Sleep(time.Hour)
		h.wantGone(testPod, testID)
		stones := h.records.tombstones()
		if len(stones) != 1 || stones[0].Record.ID != testID {
			t.Fatalf("tombstones %+v, want one", stones)
		}
	})
}

// TestGoneAsksTheStore, and nothing else.
func TestGoneAsksTheStore(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		if page, err := h.node.Gone(t.Context(), volume.GoneSelection{}); err != nil || len(page.Tombstones) > 0 {
			t.Errorf("%+v, %v; want none without a store", page, err)
		}
		h.node.env.Gone = func(s volume.GoneSelection) (volume.GonePage, error) {
			if s.ID == "broken" {
				return volume.GonePage{}, unix.EIO
			}
			return volume.GonePage{Tombstones: []volume.Tombstone{{Number: s.Below - 1}}, Next: 7}, nil
		}
		page, err := h.node.Gone(t.Context(), volume.GoneSelection{Below: 9})
		if err != nil || len(page.Tombstones) != 1 || page.Tombstones[0].Number != 8 || page.Next != 7 {
			t.Errorf("%+v, %v", page, err)
		}
		if _, err := h.node.Gone(t.Context(), volume.GoneSelection{ID: "broken"}); !errors.Is(err, unix.EIO) {
			t.Errorf("%v, want EIO", err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := h.node.Gone(ended, volume.GoneSelection{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the caller left", err)
		}
	})
}
