package ephemeral

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// lines are a node's log at level info.
type lines struct {
	t   *testing.T
	mu  sync.Mutex
	all []map[string]any
}

// logger returns a logger that keeps what is logged.
func (l *lines) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			l.t.Errorf("line %s: %v", line, err)
		}
		delete(fields, "logger")
		delete(fields, "level")
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, fields)
	}, funcr.Options{})
}

// with returns the lines with a message.
func (l *lines) with(message string) (found []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fields := range l.all {
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// wantOnly checks that there is one line with a message, and what it has.
func (l *lines) wantOnly(message string, want map[string]any) {
	l.t.Helper()
	want["msg"] = message
	if got := l.with(message); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		l.t.Errorf("lines %v\nwant one: %v", got, want)
	}
}

// withLoggedNode is withNode with a log that is kept.
func withLoggedNode(t *testing.T, prepare func(h *testNode), test func(t *testing.T, h *testNode, log *lines)) {
	synctest.Test(t, func(t *testing.T) {
		h, log := newTestNode(t), &lines{t: t}
		h.log = log.logger()
		prepare(h)
		h.start()
		test(t, h, log)
		h.stop()
	})
}

// named are the fields of a line about the volume of the test node's publication, and more.
func named(more map[string]any) map[string]any {
	fields := unnamed(testPod, testID, more)
	fields["namespace"], fields["pod"], fields["volume"] = "default", "batch-1", "scratch"
	return fields
}

// unnamed are the fields of a line about a volume whose names are not known, and more.
func unnamed(pod volume.PodUID, id volume.ID, more map[string]any) map[string]any {
	fields := map[string]any{"podUID": string(pod), "volumeID": string(id), "node": "node-1",
		"path":     "/data/" + string(pod) + "/" + string(id),
		"lifespan": duration.Format(testLifespan)}
	maps.Copy(fields, more)
	return fields
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestLogTellsOfAnAfterlife: one line when the volume is retained, and one when it goes, also
// across restarts.
func TestLogTellsOfAnAfterlife(t *testing.T) {
	withLoggedNode(t, func(*testNode) {}, func(t *testing.T, h *testNode, log *lines) {
		began := time.Now()
		h.publish()
		time.Sleep(time.Hour)
		h.restart()
		h.publish()
		h.unpublish()
		h.unpublish()
		retained := time.Now()
		h.restart()
		log.wantOnly("retained", named(map[string]any{"reason": "unpublished", "published": rfc3339(began),
			"until": rfc3339(retained.Add(testLifespan))}))

		time.Sleep(testLifespan + time.Minute)
		h.wantGone(testPod, testID)
		log.wantOnly("deleted", named(map[string]any{"reason": "expired", "kept": duration.Format(testLifespan)}))
		if got := len(log.with("retained")); got != 1 {
			t.Errorf("%d lines say that it is retained, want 1", got)
		}
	})
}

// TestLogSaysWhyAVolumeGoesEarly, and at which pressure factor.
func TestLogSaysWhyAVolumeGoesEarly(t *testing.T) {
	withLoggedNode(t, func(h *testNode) {
		h.retained("pod", "csi-old", 7*time.Hour, testLifespan)
	}, func(t *testing.T, h *testNode, log *lines) {
		h.disk.set(75, nil) // in the middle between headroom and floor
		time.Sleep(time.Minute)
		h.wantGone("pod", "csi-old")
		got := log.with("deleted")
		if len(got) != 1 || got[0]["reason"] != "bytes" || got[0]["pressureFactor"] != 0.5 ||
			got[0]["lifespan"] != duration.Format(testLifespan) {
			t.Fatalf("lines %v, want one for want of bytes at factor 0.5", got)
		}
		if kept, err := time.ParseDuration(got[0]["kept"].(string)); err != nil || kept < 7*time.Hour || kept > 8*time.Hour {
			t.Errorf("kept %v, want some 7 h", got[0]["kept"])
		}
	})
}

// TestLogOfADeletionThatACrashInterrupted does not say that the lifespan is over when it is not.
func TestLogOfADeletionThatACrashInterrupted(t *testing.T) {
	withLoggedNode(t, func(h *testNode) {
		for id, ago := range map[volume.ID]time.Duration{"csi-early": time.Hour, "csi-due": 13 * time.Hour} {
			h.retained("pod", id, ago, testLifespan)
			record, _ := h.records.get(id)
			record.Phase = volume.Deleting
			h.records.put(record)
		}
	}, func(t *testing.T, h *testNode, log *lines) {
		h.wantGone("pod", "csi-early")
		h.wantGone("pod", "csi-due")
		reasons := map[any]any{}
		for _, fields := range log.with("deleted") {
			reasons[fields["volumeID"]] = fields["reason"]
		}
		if want := map[any]any{"csi-early": "interrupted", "csi-due": "expired"}; !reflect.DeepEqual(reasons, want) {
			t.Errorf("reasons %v, want %v", reasons, want)
		}
	})
}

// TestLogOfVolumesWithoutAnUnpublish: one whose pod vanished, and one without a record.
func TestLogOfVolumesWithoutAnUnpublish(t *testing.T) {
	withLoggedNode(t, func(h *testNode) {
		if _, err := h.scratch.Create(volume.Place{Pod: numberedPod(1), ID: numbered(1)}); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, h *testNode, log *lines) {
		found := time.Now()
		log.wantOnly("retained", unnamed(numberedPod(1), numbered(1),
			map[string]any{"reason": "adopted", "until": rfc3339(found.Add(testLifespan))}))
		log.all = nil
		began := time.Now()
		h.publish()
		h.mounter.forgetMounts()
		h.removePod(testPod)
		time.Sleep(2 * testGrace)
		got := h.wantPhase(testID, volume.Retained)
		log.wantOnly("retained", named(map[string]any{"reason": "abandoned", "published": rfc3339(began),
			"until": rfc3339(got.Unpublished.Add(testLifespan))}))
	})
}

// TestStuckVolumeIsLoggedWithItsNames.
func TestStuckVolumeIsLoggedWithItsNames(t *testing.T) {
	withLoggedNode(t, func(*testNode) {}, func(t *testing.T, h *testNode, log *lines) {
		h.publish()
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		synctest.Wait()
		got := log.with("volume is stuck, trying again until it gets on")
		if len(got) != 1 || got[0]["namespace"] != "default" || got[0]["pod"] != "batch-1" || got[0]["podUID"] != string(testPod) ||
			got[0]["volume"] != "scratch" || got[0]["volumeID"] != string(testID) {
			t.Errorf("lines %v, want one with all names", got)
		}
		h.mounter.fail(nil, nil)
		time.Sleep(time.Minute)
	})
}

// TestBurstOfDeletionsIsLoggedShort: ten thousand volumes that are due at once write no ten
// thousand lines, and none is left out of the count.
func TestBurstOfDeletionsIsLoggedShort(t *testing.T) {
	const volumes = 3 * afterlifeBurst
	withLoggedNode(t, func(h *testNode) {
		for i := range volumes {
			h.records.put(volume.Record{ID: numbered(i), Pod: "pod"}.Retain(time.Now().Add(-testLifespan+time.Minute), testLifespan))
		}
	}, func(t *testing.T, h *testNode, log *lines) {
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		written, leftOut := len(log.with("deleted")), 0
		for _, fields := range log.with("deleted more volumes than are logged one by one") {
			leftOut += int(fields["count"].(float64))
		}
		if h.records.retained() != 0 || written < afterlifeBurst || written > afterlifeBurst+afterlifeBurst/10 || written+leftOut != volumes {
			t.Errorf("%d lines and %d left out of %d volumes", written, leftOut, volumes)
		}
	})
}

// TestLineLimit writes lines at a steady rate and counts those that pass in each second.
func TestLineLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{t: t}
		limit := lineLimit{burst: afterlifeBurst, again: afterlifeAgain, summaryAfter: afterlifeSummary}
		more := func(count int) { log.logger().Info("more", "count", count) }
		const linesPerSecond = afterlifeBurst / 10
		passed := 0
		for range afterlifeBurst + 50 {
			if limit.allow(more) {
				passed++
			}
		}
		if passed != afterlifeBurst {
			t.Errorf("%d lines at once, want %d", passed, afterlifeBurst)
		}
		time.Sleep(2 * afterlifeSummary)
		synctest.Wait()
		for second := range 3 {
			passed = 0
			for range 10 * linesPerSecond {
				if limit.allow(more) {
					passed++
				}
				time.Sleep(time.Second / (10 * linesPerSecond))
			}
			// The two seconds without a line leave room for twice as many at first.
			if want := linesPerSecond; passed < want || passed > 3*want+1 {
				t.Errorf("second %d: %d lines, want %d", second, passed, want)
			}
		}
		limit.flush()
		limit.flush()
		got := log.with("more")
		if len(got) < 2 || fmt.Sprint(got[0]["count"]) != "50" {
			t.Errorf("summaries %v, want the 50 that were left out at first", got)
		}
	})
}
