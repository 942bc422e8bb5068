package ephemeral

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// bindForPod mounts a directory where a pod's volumes are.
func (h *testNode) bindForPod(dir string) {
	h.t.Helper()
	if err := h.mounter.FakeMounter.Mount(dir, h.target(testPod, "other"), "", []string{"bind"}); err != nil {
		h.t.Fatal(err)
	}
}

// TestWhatIsMountedForAPodIsNotDeleted, nor adopted, in a directory that is mounted as a whole.
func TestWhatIsMountedForAPodIsNotDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		// dir is what is mounted. known and unknown are what becomes of a volume with a record and
		// of one without.
		dir            func(h *testNode) string
		known, unknown bool
	}{
		"the pod's directory":              {dir: func(h *testNode) string { return h.data(gonePod, "") }},
		"the working directory":            {dir: func(h *testNode) string { return h.data("", "") }, known: true},
		"the directory above it":           {dir: func(h *testNode) string { return h.root }, known: true},
		"the directory of another pod":     {dir: func(h *testNode) string { return h.data(testPod, "") }, known: true, unknown: true},
		"one that has a name with as much": {dir: func(h *testNode) string { return h.data(gonePod+"0", "") }, known: true, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestNode(t)
				h.retained(gonePod, numbered(1), 0, testLifespan)
				h.orphan(gonePod, numbered(2))
				h.bindForPod(tt.dir(h))
				h.start()
				h.disk.set(0, nil)
				time.Sleep(time.Hour) // measured each second
				h.disk.set(1000, nil)
				time.Sleep(3 * testLifespan)
				if gone := !h.hasMarker(gonePod, numbered(1)); gone != tt.known {
					t.Errorf("with a record: deleted %t, want %t", gone, tt.known)
				}
				if gone := !h.hasMarker(gonePod, numbered(2)); gone != tt.unknown {
					t.Errorf("without a record: deleted %t, want %t", gone, tt.unknown)
				}
				h.mounter.forgetMounts()
				time.Sleep(2 * testLifespan)
				h.wantGone(gonePod, numbered(1))
				h.wantGone(gonePod, numbered(2))
				h.stop()
			})
		})
	}
}

// TestExpiriesShareReadings: however the expiries come, reading the mount table for them takes a
// twentieth of the time, and none is late by more than that costs.
func TestExpiriesShareReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const volumes, apart = 200, 100 * time.Millisecond
		for i := range volumes {
			h.retained(gonePod, numbered(i), testLifespan-time.Hour-time.Duration(i)*apart, testLifespan)
		}
		h.start()
		h.table.takes(50 * time.Millisecond)
		time.Sleep(time.Hour - time.Second)
		before := h.table.count()
		time.Sleep(volumes*apart + time.Second + longestTableRest)
		synctest.Wait()
		if left := h.records.all(); len(left) > 0 {
			t.Errorf("%d volumes are left", len(left))
		}
		// 20 s, and a reading each 1.05 s.
		if readings := h.table.count() - before; readings > 21 {
			t.Errorf("%d readings for %d expiries in %v", readings, volumes, volumes*apart)
		}
		h.stop()
	})
}

// TestCallsWaitForNoExpiry: a call reads the mount table at once, and the expiries that wait share
// its reading.
func TestCallsWaitForNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 50 * time.Millisecond
		read := 0
		table := newMountTable(func() ([]mount.Binding, error) { time.Sleep(took); read++; return nil, nil }, func(err error) { t.Error(err) })
		go table.serve(t.Context())
		look := func(patient bool) time.Duration {
			began := time.Now()
			if _, err := table.look(t.Context(), patient); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		if waited := look(true); waited != took {
			t.Errorf("the first expiry waited for %v", waited)
		}
		waited := make(chan time.Duration)
		go func() { waited <- look(true) }()
		time.Sleep(100 * time.Millisecond)
		if waited := look(false); waited != took {
			t.Errorf("a call waited for %v", waited)
		}
		if waited := <-waited; waited != 100*time.Millisecond+took || read != 2 {
			t.Errorf("an expiry waited for %v, %d readings, want the call's", waited, read)
		}
		if waited := look(true); waited != tableShare*took+took {
			t.Errorf("the next expiry waited for %v", waited)
		}
	})
}

// TestReadingBeginsAfterTheQuestion: a reading that is under way says nothing about what was
// mounted since it began.
func TestReadingBeginsAfterTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Bool
		table := newMountTable(func() (found []mount.Binding, err error) {
			if made.Load() {
				found = []mount.Binding{{Source: "pod/volume/sub", Target: "/somewhere"}}
			}
			time.Sleep(time.Second)
			return found, nil
		}, func(err error) { t.Error(err) })
		go table.serve(t.Context())
		go func() { _, _ = table.look(t.Context(), false) }()
		time.Sleep(time.Second / 2)
		made.Store(true)
		for _, patient := range []bool{false, true} {
			found, err := table.look(t.Context(), patient)
			if err != nil || len(found.volume(volume.Place{Pod: "pod", ID: "volume"})) != 1 {
				t.Errorf("patient %t: %+v, %v, want the mount that was made before the question", patient, found, err)
			}
		}
	})
}

func TestMounted(t *testing.T) {
	m := sortBindings([]mount.Binding{
		{Source: "p/v", Target: "/1"}, {Source: "p/v/sub", Target: "/2"}, {Source: "p/v2", Target: "/3"},
		{Source: "p", Target: "/elsewhere"}, {Source: "q", Target: "/pods/x"},
	})
	for id, want := range map[volume.ID]int{"v": 2, "v2": 1, "v3": 0, "": 0} {
		if got := m.volume(volume.Place{Pod: "p", ID: id}); len(got) != want {
			t.Errorf("%s is mounted at %q, want %d places", id, got, want)
		}
	}
	if at := m.pod("p", "/pods"); at != "" {
		t.Errorf("a mount that is not below the pods directory counts: %s", at)
	}
	if at := m.pod("q", "/pods"); at != "/pods/x" || m.all() != "" {
		t.Errorf("%q, %q", at, m.all())
	}
}
