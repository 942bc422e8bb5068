package handlers

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

// deadlines is a connection that keeps the last deadline.
type deadlines struct {
	http.ResponseWriter
	last time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.last = t
	return nil
}

func newTestSender() (*deadlines, *sender) {
	to := &deadlines{ResponseWriter: httptest.NewRecorder()}
	h := newHandler(Config{Metrics: metrics.New("v1", ""), LowPriority: func() func() { return func() {} }})
	return to, newSender(&answer{Answer: api.NewAnswer(to, nil, 0), h: h}, 1)
}

// TestCutStreamGetsNoNewDeadline: a cut may come between two writes.
func TestCutStreamGetsNoNewDeadline(t *testing.T) {
	to, s := newTestSender()
	if _, err := s.Write(make([]byte, 3*progress)); err != nil || time.Until(to.last) < stallLimit/2 {
		t.Errorf("%v, deadline %v, want one in five minutes", err, to.last)
	}
	s.cut()
	_, _ = s.Write(make([]byte, 1))
	if !to.last.Before(time.Now()) {
		t.Errorf("after the cut the deadline is %v, want one in the past", to.last)
	}
}

// TestArchiveThatIsCutBeforeItBegins gets no new deadline, either.
func TestArchiveThatIsCutBeforeItBegins(t *testing.T) {
	to, s := newTestSender()
	w := &archiveWriter{sender: s, code: http.StatusOK, high: func() {}}
	s.cut()
	_, _ = w.Write(make([]byte, 1))
	if !to.last.Before(time.Now()) {
		t.Errorf("the deadline is %v, want one in the past", to.last)
	}
}

// TestCutAfterTheEnd: the volume may be lost when the last byte was sent, and the connection has the
// next request by then.
func TestCutAfterTheEnd(t *testing.T) {
	to, s := newTestSender()
	s.renew()
	s.end()
	s.cut()
	if time.Until(to.last) < stallLimit/2 {
		t.Errorf("the deadline is %v, want that from before the cut", to.last)
	}
}

// TestArchiveGoesOnAfterARestart: the daemon then computes anew when a volume was unpublished.
func TestArchiveGoesOnAfterARestart(t *testing.T) {
	r := volume.Record{ID: "csi-1", Published: time.Unix(1000, 0), Unpublished: time.Unix(2000, 7)}
	tag := archiveTag(r, paths.Path{}, api.BytesQuery{})
	again := r
	again.Unpublished = time.Unix(1999, 999_999_000)
	if got := archiveTag(again, paths.Path{}, api.BytesQuery{}); got != tag {
		t.Errorf("after a restart the tag is %s, want %s", got, tag)
	}
	again.Published = time.Unix(1001, 0)
	if archiveTag(again, paths.Path{}, api.BytesQuery{}) == tag {
		t.Error("the tag is the same after the volume was published again")
	}
}

// TestUsageTakesLittleMemory whatever the number of pods.
func TestUsageTakesLittleMemory(t *testing.T) {
	u := newUsage()
	for i := range 100_000 {
		name := string(rune(0x4e00+i%20000)) + string(rune('a'+i/20000))
		u.add(volume.Record{Pod: volume.PodUID(name), Namespace: name}, api.PodUsage{Retained: 1, RetainedBytes: int64(i)})
		if u.shrink(); len(u.pods.of) > 2*mostPods || len(u.namespaces.of) > 2*mostPods {
			t.Fatalf("%d pods and %d namespaces are kept", len(u.pods.of), len(u.namespaces.of))
		}
	}
	r := u.result("", volume.Space{})
	if last := r.Namespaces[len(r.Namespaces)-1]; len(r.Namespaces) != mostPods+1 || last.Namespace != "" || last.Retained != 99_000 {
		t.Errorf("%d namespaces, the last %+v", len(r.Namespaces), last)
	}
	if len(r.Pods) != mostPods || r.OtherPods != 99_000 || r.Pods[0].RetainedBytes != 99_999 {
		t.Errorf("%d pods, %d others, the largest %+v", len(r.Pods), r.OtherPods, r.Pods[0])
	}
}

// TestFilesAreReadWithLowPriority, and it is given back: also while the client keeps the reader
// waiting.
func TestFilesAreReadWithLowPriority(t *testing.T) {
	var low, times atomic.Int64
	n := newNode(t, func(h *handler) {
		h.LowPriority = func() func() {
			low.Add(1)
			times.Add(1)
			return func() { low.Add(-1) }
		}
	})
	id, dir := n.add(1)
	large(t, filepath.Join(dir, "large"))
	for _, tt := range []struct {
		q     api.BytesQuery
		times int64 // before the first byte is sent
	}{{api.BytesQuery{Path: "large"}, 2}, {api.BytesQuery{Archive: true}, 1}} {
		q := tt.q
		times.Store(0)
		s, err := n.client.Bytes(t.Context(), id, q)
		must(t, err)
		eventually(t, "waiting for the client", func() bool { return times.Load() >= tt.times && low.Load() == 0 })
		s.Close()
		n.volumes.wantAllClosed(t)
		if low.Load() != 0 {
			t.Errorf("%+v: %d keep the low priority", q, low.Load())
		}
	}
	times.Store(0)
	_, err := n.client.Files(t.Context(), id, api.FilesQuery{})
	if must(t, err); times.Load() == 0 {
		t.Error("a list has the usual priority")
	}
}
