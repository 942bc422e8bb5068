package ephemeral

import (
	"errors"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// keepsEnd says how the pod has ended.
func (h *testNode) keepsEnd(end string) {
	h.t.Helper()
	if err := h.node.KeepEnd(h.t.Context(), testPod, []byte(end)); err != nil {
		h.t.Fatal(err)
	}
}

// TestArchivedLogsHaveTheEnd: logs that are copied, or were, when it comes out how their pod has ended are archived once more, and
// a gateway can tell the copies apart. Who reads them goes on.
func TestArchivedLogsHaveTheEnd(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		h.publishOn(archiveTerms)
		h.own(sealed())
		h.end(volume.Failed)
		h.unpublish()
		h.wantLogs()
		w, err := h.node.ToArchive(t.Context(), map[volume.ID]struct{}{testID: {}}, nil)
		if err != nil || w.Volumes != 1 || w.Next != "" || w.Later <= 0 {
			t.Errorf("right after the end %+v, %v, want logs that wait a little", w, err)
		}
		time.Sleep(time.Minute)
		until := time.Now().Add(100 * time.Hour)
		reader, err := h.node.Read(t.Context(), logsID())
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		reading, archived, err := h.node.ReadToArchive(t.Context(), logsID())
		if err != nil {
			t.Fatal(err)
		}
		h.keepsEnd("first")
		if err := archived(t.Context(), until); !errors.Is(err, volume.ErrNotRetained) {
			t.Errorf("copied without the end: %v", err)
		}
		reading.Close()
		if reader.Lost.Err() != nil {
			t.Error("a person cannot go on reading")
		}
		reading, archived, err = h.node.ReadToArchive(t.Context(), logsID())
		if err == nil {
			err = archived(t.Context(), until)
		}
		if err != nil {
			t.Fatal(err)
		}
		reading.Close()
		h.keepsEnd("first")
		if r := h.wantLogs(); !r.Archived() {
			t.Error("what is known already lets them be archived once more")
		}
		h.keepsEnd("second")
		h.wantKept(api.PodEnd, "second")
		r := h.wantLogs()
		if r.Archived() || !r.Published.After(r.Unpublished) {
			t.Errorf("archived without the end: %+v", r)
		}
	})
}

// TestLogsKeptAnewAreNoOldCopy: the volume that is published again need not be the one whose terms the logs get.
func TestLogsKeptAnewAreNoOldCopy(t *testing.T) {
	withLogs(t, func(t *testing.T, h *testNode) {
		p := h.publication() // it stays
		p.ID, p.Target.Path, p.Terms = numbered(1), h.target(testPod, "other"), archiveTerms
		if err := h.node.Publish(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		h.publish()
		h.unpublish()
		before := h.wantLogs()
		h.publish()
		h.print("main", "1.log", "again")
		time.Sleep(time.Minute)
		h.unpublish()
		if r := h.wantLogs(); !r.Unpublished.After(before.Unpublished) || !r.Published.After(before.Unpublished) {
			t.Errorf("%+v, which a copy of %s may be taken for", r, before.Unpublished)
		}
	})
}
