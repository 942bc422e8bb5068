package ephemeral

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

const decisionLine = "a person's decision about a retained volume"

// TestAudit: each decision is a line, also one that was refused, with who, what and why.
func TestAudit(t *testing.T) {
	withLoggedNode(t, (*testNode).allowPins, func(t *testing.T, h *testNode, log *lines) {
		want := func(verb, by, why, until, result string) {
			t.Helper()
			fields := map[string]any{"msg": decisionLine, "namespace": "default", "pod": "batch-1", "podUID": string(testPod), "volume": "scratch",
				"volumeID": string(testID), "node": "node-1", "verb": verb, "user": by, "reason": why, "result": result}
			if until != "" {
				fields["until"] = until
			}
			all := log.with(decisionLine)
			last := all[len(all)-1]
			if got, _ := last["result"].(string); result != "done" && strings.Contains(got, result) {
				fields["result"] = got
			}
			if !reflect.DeepEqual(last, fields) {
				t.Errorf("logged %v\nwant %v", last, fields)
			}
		}
		h.publish()
		_, _ = h.release()
		want("release", "bob", "", "", volume.ErrNotRetained.Error())
		h.unpublish()
		at := time.Now().Add(time.Hour)
		h.mustPin(1)
		want("pin", "ann", "a bug", at.UTC().Format(time.RFC3339), "done")
		_, _ = h.pin(1000)
		want("pin", "ann", "a bug", time.Now().Add(1000*time.Hour).UTC().Format(time.RFC3339), "hold.until is more than 1w from now")
		_, _ = h.unpin()
		want("unpin", "bob", "", "", "done")
		_, _ = h.release()
		want("release", "bob", "", "", "done")
		_ = h.node.Purge(t.Context(), testID, strings.Repeat("n", 1<<20), strings.Repeat("w", 1<<20))
		want("purge", strings.Repeat("n", volume.MaxHoldBy)+"...",
			strings.Repeat("w", volume.MaxHoldWhy)+"...", "", "hold.by is longer than 253 bytes")
		if err := h.node.Purge(t.Context(), testID, "ann", "a secret leaked"); err != nil {
			t.Fatal(err)
		}
		want("purge", "ann", "a secret leaked", "", "done")
		_ = h.node.Purge(t.Context(), testID, "ann", "")
		all := log.with(decisionLine)
		if last := all[len(all)-1]; last["volumeID"] != string(testID) || !strings.Contains(last["result"].(string), "not found") {
			t.Errorf("logged %v", last)
		}
		if len(all) != 8 {
			t.Errorf("%d lines", len(all))
		}
	})
}

// TestAuditOfAFlood is bounded, and refusals hide no decision that was carried out.
func TestAuditOfAFlood(t *testing.T) {
	withLoggedNode(t, (*testNode).allowPins, func(t *testing.T, h *testNode, log *lines) {
		h.retain()
		const flood = afterlifeBurst + 500
		for range flood {
			_, _ = h.pin(-1)
		}
		h.mustPin(1)
		all := log.with(decisionLine)
		if len(all) != afterlifeBurst+1 || all[afterlifeBurst]["result"] != "done" {
			t.Errorf("%d lines", len(all))
		}
		time.Sleep(afterlifeSummary)
		synctest.Wait()
		log.wantOnly("more refused decisions about retained volumes than are logged one by one", map[string]any{"count": 500.})
	})
}
