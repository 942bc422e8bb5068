package ephemeral

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// testTerms are those of a pod whose volume may go sooner if it Succeeded.
var testTerms = volume.Terms{Lifespan: 6 * time.Hour, LifespanSucceeded: time.Hour}

// publishOn publishes the test node's volume on these terms.
func (h *testNode) publishOn(terms volume.Terms) {
	h.t.Helper()
	p := h.publication()
	p.Terms = terms
	if err := h.node.Publish(h.t.Context(), p); err != nil {
		h.t.Fatalf("publish: %v", err)
	}
}

func (h *testNode) end(o volume.Outcome) {
	h.t.Helper()
	if err := h.node.End(h.t.Context(), testID, testPod, o); err != nil {
		h.t.Fatalf("end as %s: %v", o, err)
	}
}

// wantOutcome checks how the pod of the test node's volume ended, in memory and on disk, and in how
// long the volume goes.
func (h *testNode) wantOutcome(when string, known, recorded volume.Outcome, left time.Duration) {
	h.t.Helper()
	synctest.Wait()
	d, err := h.node.Describe(h.t.Context(), testID)
	if err != nil || d.Record.Outcome != known || d.Record.Phase == volume.Retained && time.Until(d.Deadline) != left {
		h.t.Errorf("%s: %s, goes in %v, %v; want %s and %v", when, d.Record.Outcome, time.Until(d.Deadline), err, known, left)
	}
	r, _ := h.records.get(testID)
	if r.Outcome != recorded || r.Phase == volume.Retained && time.Until(r.Until()) != left {
		h.t.Errorf("%s: on disk %s until %v, want %s and %v", when, r.Outcome, time.Until(r.Until()), recorded, left)
	}
}

// TestEndWhilePublished costs no commit, is on disk with the unpublish, and decides the lifespan
// then. After a crash before that the outcome is Unknown, and the lifespan is the full one.
func TestEndWhilePublished(t *testing.T) {
	for o, left := range map[volume.Outcome]time.Duration{
		volume.Succeeded: time.Hour, volume.Failed: 6 * time.Hour, volume.Stopped: 6 * time.Hour,
	} {
		t.Run(o.String(), func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.publishOn(testTerms)
				h.writeMarker(testPod, testID)
				commits := h.records.committed()
				h.end(o)
				h.end(o)
				h.wantOutcome("live", o, volume.OutcomeUnknown, 0)
				if now := h.records.committed(); now != commits {
					t.Errorf("%d commits for an outcome in memory", now-commits)
				}
				time.Sleep(100 * time.Hour) // nothing touches a live volume
				h.wantMarker("live")
				h.unpublish()
				h.wantOutcome("unpublished", o, o, left)
				h.wantValues("unpublished", metricstest.Values{
					`katbox_outcomes_total{outcome="` + o.String() + `"}`: 1, `katbox_outcomes_total{outcome="Unknown"}`: 0,
				})
				h.publishOn(testTerms)
				h.wantOutcome("again", volume.OutcomeUnknown, volume.OutcomeUnknown, 0)
				h.end(o)
				h.restart()
				h.wantOutcome("after a crash", volume.OutcomeUnknown, volume.OutcomeUnknown, 0)
				h.unpublish()
				h.wantOutcome("after a crash", volume.OutcomeUnknown, volume.OutcomeUnknown, 6*time.Hour)
				h.wantValues("after a crash", metricstest.Values{`katbox_outcomes_total{outcome="Unknown"}`: 1})
			})
		})
	}
}

// TestEndWhileRetained is durable when it is answered. Whatever the order is, the volume is never kept
// less than it was promised to a pod that did not Succeed.
func TestEndWhileRetained(t *testing.T) {
	const full = 6 * time.Hour
	type step struct {
		after   time.Duration
		said    volume.Outcome
		known   volume.Outcome
		left    time.Duration
		commits int
	}
	for name, steps := range map[string][]step{
		"at once":             {{0, volume.Succeeded, volume.Succeeded, time.Hour, 1}},
		"twice":               {{0, volume.Succeeded, volume.Succeeded, time.Hour, 1}, {0, volume.Succeeded, volume.Succeeded, time.Hour, 0}},
		"within the lifespan": {{30 * time.Minute, volume.Succeeded, volume.Succeeded, 30 * time.Minute, 1}},
		"late":                {{2 * time.Hour, volume.Succeeded, volume.Succeeded, testRelease, 1}},
		"late, rounded":       {{2*time.Hour + time.Second, volume.Succeeded, volume.Succeeded, 20*time.Minute - time.Second, 1}},
		"at the end":          {{full - time.Minute, volume.Succeeded, volume.Succeeded, time.Minute, 1}},
		"failed":              {{time.Hour, volume.Failed, volume.Failed, 5 * time.Hour, 1}},
		"stopped":             {{time.Hour, volume.Stopped, volume.Stopped, 5 * time.Hour, 1}},
		"corrected": {{0, volume.Succeeded, volume.Succeeded, time.Hour, 1}, {time.Minute, volume.Failed, volume.Failed, full - time.Minute, 1},
			{0, volume.Succeeded, volume.Failed, full - time.Minute, 0}},
		"not the other way": {{0, volume.Failed, volume.Failed, full, 1}, {0, volume.Succeeded, volume.Failed, full, 0},
			{0, volume.Stopped, volume.Failed, full, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.publishOn(testTerms)
				h.writeMarker(testPod, testID)
				h.unpublish()
				h.wantOutcome("retained", volume.OutcomeUnknown, volume.OutcomeUnknown, full)
				var until time.Time
				for _, s := range steps {
					time.Sleep(s.after)
					commits := h.records.committed()
					h.end(s.said)
					h.wantOutcome(s.said.String(), s.known, s.known, s.left)
					if now := h.records.committed(); now != commits+s.commits {
						t.Errorf("%s: %d commits, want %d", s.said, now-commits, s.commits)
					}
					until = time.Now().Add(s.left)
				}
				time.Sleep(time.Until(until) - time.Second)
				h.wantMarker("a second before")
				time.Sleep(2 * time.Second)
				h.wantGone(testPod, testID)
			})
		})
	}
}

// TestRetain keeps a last grace after the outcomes for which the pod wants nothing to be kept.
func TestRetain(t *testing.T) {
	for retain, kept := range map[volume.Retain]map[volume.Outcome]time.Duration{
		volume.RetainAlways:    {volume.Succeeded: time.Hour, volume.Failed: 6 * time.Hour, volume.OutcomeUnknown: 6 * time.Hour},
		volume.RetainOnFailure: {volume.Succeeded: testRelease, volume.Failed: 6 * time.Hour, volume.OutcomeUnknown: 6 * time.Hour},
		volume.RetainNever:     {volume.Succeeded: testRelease, volume.Failed: testRelease, volume.OutcomeUnknown: testRelease},
	} {
		for o, left := range kept {
			t.Run(retain.String()+" "+o.String(), func(t *testing.T) {
				withNode(t, func(t *testing.T, h *testNode) {
					terms := testTerms
					terms.Retain = retain
					h.publishOn(terms)
					if o != volume.OutcomeUnknown {
						h.end(o)
					}
					h.unpublish()
					h.wantOutcome("retained", o, o, left)
				})
			})
		}
	}
}

// TestEndOfAHeldVolume changes its lifespan, and no decision of a person.
func TestEndOfAHeldVolume(t *testing.T) {
	withHolds(t, func(t *testing.T, h *testNode) {
		h.publishOn(testTerms)
		h.unpublish()
		h.mustPin(48)
		h.end(volume.Succeeded)
		h.wantOutcome("pinned", volume.Succeeded, volume.Succeeded, 48*time.Hour)
		h.wantHeld("pinned", volume.Pinned, 48*time.Hour)
		if _, err := h.unpin(); err != nil {
			t.Fatal(err)
		}
		h.wantHeld("unpinned", volume.NoHold, time.Hour)
		if _, err := h.release(); err != nil {
			t.Fatal(err)
		}
		h.end(volume.Failed)
		h.wantHeld("released", volume.Released, testRelease)
	})
}

// TestEndWithoutTerms: what an earlier version recorded, or was found, keeps the lifespan that it has.
func TestEndWithoutTerms(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.end(volume.Succeeded)
		h.unpublish()
		h.wantOutcome("retained", volume.Succeeded, volume.Succeeded, testLifespan)
		h.publish()
		h.unpublish()
		h.end(volume.Succeeded)
		h.wantOutcome("late", volume.Succeeded, volume.Succeeded, testLifespan)
	})
}

// TestAbandonedHasNotSucceeded: nothing confirms that the pod of a volume succeeded that was not unpublished.
func TestAbandonedHasNotSucceeded(t *testing.T) {
	for said, want := range map[volume.Outcome]volume.Outcome{
		volume.Succeeded: volume.OutcomeUnknown, volume.Failed: volume.Failed, volume.Stopped: volume.Stopped,
	} {
		for name, remove := range map[string]func(*testNode){"gone": func(h *testNode) { h.removePod(testPod) }, "left": func(*testNode) {}} {
			t.Run(said.String()+", "+name, func(t *testing.T) {
				withNode(t, func(t *testing.T, h *testNode) {
					h.publishOn(testTerms)
					h.end(said)
					h.mounter.forgetMounts()
					remove(h)
					time.Sleep(noticed)
					r := h.wantPhase(testID, volume.Retained)
					if r.Outcome != want || r.Lifespan != testTerms.Lifespan {
						t.Errorf("abandoned: %s, kept for %v", r.Outcome, r.Lifespan)
					}
				})
			})
		}
	}
}

// TestEndRefuses what is no outcome, and volumes that are not known, are another pod's, or go.
func TestEndRefuses(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		end := func(pod volume.PodUID, o volume.Outcome) error { return h.node.End(t.Context(), testID, pod, o) }
		wantError(t, end(testPod, volume.Failed), volume.ErrNotFound)
		h.publishOn(testTerms)
		wantError(t, end(gonePod, volume.Succeeded), volume.ErrNotFound)
		wantError(t, end(testPod, volume.OutcomeUnknown), volume.ErrInvalid)
		wantError(t, end(testPod, volume.Stopped+1), volume.ErrInvalid)
		h.wantOutcome("live", volume.OutcomeUnknown, volume.OutcomeUnknown, 0)
		h.unpublish()
		synctest.Wait()
		wantError(t, end(gonePod, volume.Succeeded), volume.ErrNotFound)
		h.records.fail(func([]volume.Change) error { return unix.EIO })
		wantError(t, end(testPod, volume.Succeeded), unix.EIO)
		h.records.fail(nil)
		h.wantOutcome("retained", volume.OutcomeUnknown, volume.OutcomeUnknown, 6*time.Hour)
		h.wantValues("not recorded", metricstest.Values{`katbox_outcomes_total{outcome="Succeeded"}`: 0})
		h.table.takes(time.Minute)
		time.Sleep(6*time.Hour + time.Second)
		wantError(t, end(testPod, volume.Failed), volume.ErrNotFound) // it is being deleted
		time.Sleep(2 * time.Minute)
		h.wantGone(testPod, testID)
		wantError(t, end(testPod, volume.Failed), volume.ErrNotFound)
	})
}

// TestEndMeetsOtherOperations: whatever runs, the outcome is not lost, except by a publish.
func TestEndMeetsOtherOperations(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare   func(h *testNode)
		operation func(h *testNode) error
		known     volume.Outcome
		recorded  volume.Outcome
	}{
		"first publish": {func(*testNode) {}, func(h *testNode) error { return h.node.Publish(h.t.Context(), h.publication()) },
			volume.Succeeded, volume.OutcomeUnknown},
		"unpublish": {(*testNode).publish, func(h *testNode) error {
			return h.node.Unpublish(h.t.Context(), testID, h.target(testPod, "mount"))
		}, volume.Succeeded, volume.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
				tt.prepare(h)
				release := k.hold()
				done, ended := make(chan error, 1), make(chan error, 1)
				go func() { done <- tt.operation(h) }()
				synctest.Wait()
				go func() { ended <- h.node.End(t.Context(), testID, testPod, volume.Succeeded) }()
				synctest.Wait()
				release()
				if err := errors.Join(<-done, <-ended); err != nil {
					t.Fatal(err)
				}
				h.wantOutcome(name, tt.known, tt.recorded, testLifespan)
			})
		})
	}
}

// TestManyPodsEnd at once, while the node is asked to publish: all is recorded.
func TestManyPodsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes = 500
		for i := range volumes {
			h.retained(numberedPod(i), numbered(i), time.Minute, testLifespan)
		}
		h.start()
		ended := make(chan error, volumes)
		for i := range volumes {
			go func() { ended <- h.node.End(t.Context(), numbered(i), numberedPod(i), volume.Failed) }()
		}
		h.publish()
		for range volumes {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
		for i := range volumes {
			if r := h.wantPhase(numbered(i), volume.Retained); r.Outcome != volume.Failed {
				t.Errorf("volume %d: %s", i, r.Outcome)
			}
		}
		h.stop()
	})
}

// TestWithOutcome: for any order of reports, what a pod is promised holds.
func TestWithOutcome(t *testing.T) {
	all := []volume.Outcome{volume.Succeeded, volume.Failed, volume.Stopped}
	for passed := range 60 {
		now := time.Now()
		for first := range all {
			for second := range all {
				r := volume.Record{ID: testID, Terms: testTerms}.Retain(now.Add(-time.Duration(passed)*7*time.Minute), testTerms.Lifespan)
				for _, said := range []volume.Outcome{all[first], all[second]} {
					r = withOutcome(r, said, now, testRelease)
					switch {
					case r.Lifespan > testTerms.Lifespan:
						t.Errorf("%s makes it longer: %v", said, r.Lifespan)
					case r.Outcome != volume.Succeeded && r.Lifespan != testTerms.Lifespan:
						t.Errorf("%s shortens it to %v", r.Outcome, r.Lifespan)
					case r.Lifespan < testTerms.Lifespan && r.Until().Before(now.Add(testRelease)):
						t.Errorf("after %v %s leaves %v", now.Sub(r.Unpublished), said, r.Until().Sub(now))
					case r.Lifespan != testTerms.Lifespan && r.Lifespan != lifespan.RoundUp(r.Lifespan):
						t.Errorf("%s leaves a lifespan of its own: %v", said, r.Lifespan)
					}
				}
			}
		}
	}
}
