package ephemeral

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

const (
	testRelease = 10 * time.Minute
	testMaxPin  = 168 * time.Hour
)

// withHolds runs a test with a node on which volumes can be pinned.
func withHolds(t *testing.T, test func(t *testing.T, h *testNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.allowPins()
		h.start()
		test(t, h)
		h.stop()
	})
}

// allowPins lets pinned volumes take half of a disk on which there is room for them.
func (h *testNode) allowPins() {
	h.t.Helper()
	h.maxPinned = amount(h.t, "50%")
	h.disk.total, h.disk.free = 1<<30, 1<<30
}

func amount(t *testing.T, text string) lifespan.Amount {
	t.Helper()
	is, err := lifespan.ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func (h *testNode) pin(hours int) (volume.Description, error) {
	return h.node.Pin(h.t.Context(), testID, time.Now().Add(time.Duration(hours)*time.Hour), "ann", "a bug")
}

func (h *testNode) mustPin(hours int) {
	h.t.Helper()
	if _, err := h.pin(hours); err != nil {
		h.t.Fatalf("pin: %v", err)
	}
}

func (h *testNode) unpin() (volume.Description, error) {
	return h.node.Unpin(h.t.Context(), testID, "bob")
}

func (h *testNode) release() (volume.Description, error) {
	return h.node.Release(h.t.Context(), testID, "bob", "")
}

// wantHeld checks the hold of the test node's volume, as it is described, listed and on disk, and
// in how long it goes.
func (h *testNode) wantHeld(when string, kind volume.HoldKind, left time.Duration) {
	h.t.Helper()
	d, err := h.node.Describe(h.t.Context(), testID)
	if err != nil || d.Record.Hold.Kind != kind || time.Until(d.Deadline) != left || kind != volume.NoHold && d.Early {
		h.t.Errorf("%s: %+v in %v, early %t, %v; want %s and %v", when, d.Record.Hold, time.Until(d.Deadline), d.Early, err, kind, left)
	}
	page, err := h.node.List(h.t.Context(), volume.Selection{Limit: 1})
	if err != nil || len(page.Volumes) != 1 || page.Volumes[0].Record.Hold != d.Record.Hold || !page.Volumes[0].Deadline.Equal(d.Deadline) {
		h.t.Errorf("%s: listed as %+v, %v; described as %+v", when, page.Volumes, err, d)
	}
	if r := h.wantPhase(testID, volume.Retained); r.Hold != d.Record.Hold {
		h.t.Errorf("%s: on disk %+v, described as %+v", when, r.Hold, d.Record.Hold)
	}
}

// TestHolds: each decision is durable when it is answered, and the last one counts. What is asked
// twice is recorded once.
func TestHolds(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		time.Sleep(time.Hour) // it is measured
		reading := h.read()
		left := testLifespan - time.Hour
		h.wantHeld("at first", volume.NoHold, left)
		for _, step := range []struct {
			name    string
			ask     func() (volume.Description, error)
			kind    volume.HoldKind
			left    time.Duration
			commits int
		}{
			{"unpin", h.unpin, volume.NoHold, left, 0},
			{"pin", func() (volume.Description, error) { return h.pin(48) }, volume.Pinned, 48 * time.Hour, 1},
			{"pin again", func() (volume.Description, error) { return h.pin(48) }, volume.Pinned, 48 * time.Hour, 0},
			{"pin longer", func() (volume.Description, error) { return h.pin(168) }, volume.Pinned, 168 * time.Hour, 1},
			{"pin for less", func() (volume.Description, error) { return h.pin(24) }, volume.Pinned, 24 * time.Hour, 1},
			{"unpin", h.unpin, volume.NoHold, left, 1},
			{"release", h.release, volume.Released, testRelease, 1},
			{"pin", func() (volume.Description, error) { return h.pin(48) }, volume.Pinned, 48 * time.Hour, 1},
			{"release", h.release, volume.Released, testRelease, 1},
			{"unpin", h.unpin, volume.NoHold, left, 1},
		} {
			commits := h.records.committed()
			d, err := step.ask()
			if err != nil || d.Record.Hold.Kind != step.kind || time.Until(d.Deadline) != step.left || d.Size == (volume.Size{}) {
				t.Fatalf("%s: %+v, %v", step.name, d, err)
			}
			h.wantHeld(step.name, step.kind, step.left)
			synctest.Wait() // it sleeps
			h.wantHeld(step.name+", asleep", step.kind, step.left)
			if now := h.records.committed(); now != commits+step.commits {
				t.Errorf("%s: %d commits, want %d", step.name, now-commits, step.commits)
			}
		}
		if err := reading.Lost.Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(reading.Lost))
		}
		reading.Close()
	})
}

// TestHoldsAfterARestart: they are on disk, and so are their texts.
func TestHoldsAfterARestart(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.mustPin(48)
		before := h.wantPhase(testID, volume.Retained).Hold
		if before.By != "ann" || before.Why != "a bug" {
			t.Errorf("on disk: %+v", before)
		}
		h.restart()
		h.wantHeld("pinned", volume.Pinned, 48*time.Hour-2*time.Second)
		if after := h.wantPhase(testID, volume.Retained).Hold; after != before {
			t.Errorf("%+v after a restart, before %+v", after, before)
		}
		h.wantValues("pinned", metricstest.Values{"katbox_pinned_volumes": 1})
		if _, err := h.release(); err != nil {
			t.Fatal(err)
		}
		h.restart()
		h.wantHeld("released", volume.Released, testRelease-2*time.Second)
		h.wantValues("released", metricstest.Values{"katbox_pinned_volumes": 0})
	})
}

// TestHoldEndsWithPublish: the pod has its volume again, and its next unpublish begins anew.
func TestHoldEndsWithPublish(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.mustPin(48)
		h.wantValues("pinned", metricstest.Values{"katbox_pinned_volumes": 1})
		h.publish()
		h.wantValues("published", metricstest.Values{"katbox_pinned_volumes": 0, "katbox_pinned_bytes": 0})
		h.unpublish()
		synctest.Wait() // it sleeps
		h.wantHeld("unpublished", volume.NoHold, testLifespan)

		h.mustPin(48)
		h.mounter.fail(always(unix.EIO), nil)
		if err := h.node.Publish(t.Context(), h.publication()); err == nil {
			t.Error("published")
		}
		synctest.Wait() // it sleeps
		h.wantHeld("after a publish that failed", volume.Pinned, 48*time.Hour)
		h.wantValues("after a publish that failed", metricstest.Values{"katbox_pinned_volumes": 1})
	})
}

// TestHoldRefuses says what is wrong, and changes nothing.
func TestHoldRefuses(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		for _, ask := range []func() (volume.Description, error){func() (volume.Description, error) { return h.pin(1) }, h.unpin, h.release} {
			_, err := ask()
			wantError(t, err, volume.ErrNotFound)
		}
		h.publish()
		for _, ask := range []func() (volume.Description, error){func() (volume.Description, error) { return h.pin(1) }, h.unpin, h.release} {
			_, err := ask()
			wantError(t, err, volume.ErrNotRetained)
		}
		h.unpublish()
		synctest.Wait()
		commits := h.records.committed()
		soon := time.Now().Add(time.Hour)
		for name, tt := range map[string]struct {
			until         time.Time
			by, why, says string
		}{
			"no person":    {soon, "", "a bug", "hold.by is missing"},
			"no reason":    {soon, "ann", "", "hold.why is missing: say for what the volume is kept"},
			"in the past":  {time.Now(), "ann", "a bug", "hold.until is not in the future"},
			"for too long": {time.Now().Add(testMaxPin + pinSlack + 1), "ann", "a bug", "hold.until is more than 1w from now"},
			"two lines":    {soon, "ann", "a\nbug", "hold.why has characters that cannot be printed"},
			"colors":       {soon, "\x1b[31mann", "a bug", "hold.by has characters that cannot be printed"},
			"long":         {soon, "ann", strings.Repeat("r", volume.MaxHoldWhy+1), "hold.why is longer than 1024 bytes"},
			"long name":    {soon, strings.Repeat("n", volume.MaxHoldBy+1), "a bug", "hold.by is longer than 253 bytes"},
		} {
			_, err := h.node.Pin(t.Context(), testID, tt.until, tt.by, tt.why)
			if wantError(t, err, volume.ErrInvalid); !strings.HasPrefix(err.Error(), tt.says) {
				t.Errorf("%s: %v, want %s", name, err, tt.says)
			}
		}
		if _, err := h.node.Pin(t.Context(), testID, time.Now().Add(testMaxPin), "ann", strings.Repeat("r", volume.MaxHoldWhy)); err != nil {
			t.Errorf("as long as may be: %v", err)
		}
		if now := h.records.committed(); now != commits+1 {
			t.Errorf("%d commits", now-commits)
		}
	})
}

// TestHoldThatCannotBeRecorded leaves the volume as it was.
func TestHoldThatCannotBeRecorded(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		_, err := h.pin(48)
		wantError(t, err, unix.EIO)
		h.records.fail(nil)
		h.wantHeld("refused", volume.NoHold, testLifespan)
		h.wantValues("refused", metricstest.Values{"katbox_pinned_volumes": 0, "katbox_pinned_bytes": 0})
		h.mustPin(48)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		_, err = h.unpin()
		wantError(t, err, unix.EIO)
		h.records.fail(nil)
		h.wantHeld("still pinned", volume.Pinned, 48*time.Hour)
		h.wantValues("still pinned", metricstest.Values{"katbox_pinned_volumes": 1})
	})
}

// TestUnpinLeavesAGrace: a volume whose lifespan is over does not go at once.
func TestUnpinLeavesAGrace(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.mustPin(48)
		time.Sleep(testLifespan + time.Hour)
		for range 2 {
			if _, err := h.unpin(); err != nil {
				t.Fatal(err)
			}
			h.wantHeld("unpinned", volume.Pinned, testRelease)
		}
		h.mustPin(24)
		h.wantHeld("a mistake", volume.Pinned, 24*time.Hour)
		if _, err := h.unpin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(testRelease + time.Second)
		h.wantGone(testPod, testID)
	})
}

// TestReleaseLeavesAGrace: a volume that only its pin has kept does not go at once when it is released,
// and the release can be taken back.
func TestReleaseLeavesAGrace(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.retain()
		h.mustPin(48)
		time.Sleep(testLifespan + time.Hour)
		if _, err := h.release(); err != nil {
			t.Fatal(err)
		}
		h.wantHeld("released", volume.Released, testRelease)
		h.restart()
		h.wantHeld("released, after a restart", volume.Released, testRelease-2*time.Second)
		h.mustPin(24)
		h.wantHeld("a mistake", volume.Pinned, 24*time.Hour)
		if _, err := h.release(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(testRelease + time.Second)
		h.wantGone(testPod, testID)
	})
}

// TestDecisionsNeedTheirTexts: what cannot be recorded of a person's decision is refused, whatever the
// decision is, and changes nothing.
func TestDecisionsNeedTheirTexts(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.leaveBehind()
		before, err := h.node.Describe(t.Context(), testID)
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(time.Hour)
		for name, decide := range map[string]func(by, why string) (volume.Description, error){
			"pin": func(by, why string) (volume.Description, error) {
				return h.node.Pin(t.Context(), testID, until, by, why)
			},
			"release": func(by, why string) (volume.Description, error) { return h.node.Release(t.Context(), testID, by, why) },
			"unpin":   func(by, _ string) (volume.Description, error) { return h.node.Unpin(t.Context(), testID, by) },
		} {
			long := strings.Repeat("a", 1<<20)
			for _, texts := range [][2]string{{"", "a bug"}, {long, "a bug"}, {"ann", long}, {"ann", "\xff"}} {
				if name == "unpin" && texts[0] == "ann" {
					continue // it has no reason
				}
				_, err := decide(texts[0], texts[1])
				wantError(t, err, volume.ErrInvalid)
			}
		}
		after, err := h.node.Describe(t.Context(), testID)
		if err != nil || after.Record.Hold != before.Record.Hold || after.Deadline != before.Deadline {
			t.Errorf("after what was refused: %+v, %v, want %+v", after, err, before)
		}
	})
}
