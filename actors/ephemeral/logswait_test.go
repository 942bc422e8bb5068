package ephemeral

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
)

// TestLogsWaitForCalls, and it is recorded meanwhile that they are to be kept.
func TestLogsWaitForCalls(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		h.wantPhase(logsID(), volume.Publishing)
		if exists, err := h.scratch.Exists(volume.Place{Pod: testPod, ID: logsID()}); exists || err != nil {
			t.Errorf("the logs are copied at once: %t, %v", exists, err)
		}
		h.removeLogs()
		h.wantLogs()
		h.wantKept("main/0.log", logLine)
	})
}

// TestManyLogsDoNotWait: where those of more pods may find no place, calls have to wait.
func TestManyLogsDoNotWait(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.stop()
		h.logs.Close()
		var err error
		if h.logs, err = lastwords.Open(lastwords.Config{Dir: h.logsDir(), MostOpen: 1}); err != nil {
			t.Fatal(err)
		}
		h.start()
		h.publish()
		h.unpublish()
		h.wantPhase(logsID(), volume.Retained)
	})
}

// TestKilledWhileLogsWait: the next start goes on where the kubelet has them still, and forgets them where it has not.
func TestKilledWhileLogsWait(t *testing.T) {
	for name, there := range map[string]bool{"the kubelet has them": true, "they are gone": false} {
		t.Run(name, func(t *testing.T) {
			withLogs(t, func(t *testing.T, h *testNode) {
				h.publish()
				h.unpublish()
				synctest.Wait()
				if !there {
					h.removeLogs()
				}
				h.stop()
				h.wantPhase(logsID(), volume.Publishing)
				h.logs.Close() // what a dead daemon held open is gone
				h.openLogs()
				h.start()
				if !there {
					h.wantNoLogs()
					return
				}
				h.wantLogs()
				h.wantKept("main/0.log", logLine)
			})
		})
	}
}

// TestNothingIsLeftOfIntents where there are no logs, or the volume whose terms they would have is gone first.
func TestNothingIsLeftOfIntents(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.removeLogs()
		h.publish()
		h.unpublish()
		h.wantPhase(logsID(), volume.Publishing)
		h.wantNoLogs()

		h.publish()
		h.print("main", "0.log", logLine)
		h.unpublish()
		h.wantPhase(logsID(), volume.Publishing)
		if err := h.node.Purge(t.Context(), testID, "root", "a secret leaked"); err != nil {
			t.Fatal(err)
		}
		h.wantNoLogs()
	})
}

// TestLogsThatAreKeptStay as they are while those of the pod's next end wait: a person may have pinned them.
func TestLogsThatAreKeptStay(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publish()
		h.unpublish()
		h.wantLogs()
		if _, err := h.node.Pin(t.Context(), logsID(), time.Now().Add(3*time.Hour), "eve", "look at it"); err != nil {
			t.Fatal(err)
		}
		h.publish()
		h.print("main", "1.log", "again")
		h.unpublish()
		if r := h.wantPhase(logsID(), volume.Retained); r.Hold.By != "eve" {
			t.Errorf("the record is %+v", r)
		}
		h.wantLogs()
		h.wantKept("main/1.log", "again")
	})
}
