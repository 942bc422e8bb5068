package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// pieceAsk is an ask for a piece.
func pieceAsk(id string, number int) api.UploadAsk {
	return api.UploadAsk{ID: id, Piece: &api.UploadPiece{Number: number, Length: 1, SHA256: fmt.Sprint("sum", number)}}
}

// TestUploads: an ask gets the answer that is about it, of any gateway that listens, and no other.
func TestUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUploads()
		var got api.UploadAnswer
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			got, err = u.Ask(t.Context(), pieceAsk("v", 3), time.Minute)
		}()
		synctest.Wait()
		first := u.open("gateway-1")
		if !isSet(first.ready) {
			t.Error("a gateway that begins to listen is not told what waits")
		}
		if words := u.take(first); len(words) != 1 || words[0].Number() != 3 {
			t.Errorf("%+v", words)
		}
		if words := u.take(first); len(words) > 0 {
			t.Errorf("%+v is told twice", words)
		}
		// The gateway goes, and another one is told.
		second := u.open("gateway-2")
		isSet(second.ready)
		u.close(first)
		if !isSet(second.ready) || len(u.take(first)) > 0 || len(u.take(second)) != 1 {
			t.Error("what a gateway that is gone has not answered is not asked again")
		}
		// It does not answer either.
		third := u.open("gateway-3")
		isSet(third.ready)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !isSet(third.ready) || len(u.take(second)) > 0 || len(u.take(third)) != 1 {
			t.Error("what was not answered in time is not asked of another gateway")
		}
		for _, other := range []api.UploadAnswer{
			{ID: "w", Number: 3, SHA256: "sum3"}, {ID: "v", Number: 2, SHA256: "sum3"}, {ID: "v", Number: 3, SHA256: "sum2"},
		} {
			if u.answer(other) {
				t.Errorf("%+v is taken", other)
			}
		}
		if !u.answer(api.UploadAnswer{ID: "v", Number: 3, SHA256: "sum3", URL: "https://bucket/x"}) {
			t.Error("the answer is not taken")
		}
		<-ended
		if err != nil || got.URL != "https://bucket/x" || len(u.waiting) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestUploadsAreBounded: in number, and in time.
func TestUploadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUploads()
		var given atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range mostUploads {
			go func() {
				if _, err := u.Ask(ctx, pieceAsk("v", i), 10*time.Second); errors.Is(err, context.DeadlineExceeded) {
					given.Add(1)
				}
			}()
		}
		synctest.Wait()
		if _, err := u.Ask(ctx, pieceAsk("v", 99), time.Second); !errors.Is(err, errUploadsBusy) {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if given.Load() != mostUploads || len(u.waiting) > 0 {
			t.Errorf("%d of %d have given up, and %d wait", given.Load(), mostUploads, len(u.waiting))
		}
	})
}

// TestArchiveOverTheWire: a gateway is told what waits to be archived and which URLs are wanted, and its answer arrives. Without an
// archive there is no trace of that.
func TestArchiveOverTheWire(t *testing.T) {
	for _, on := range []bool{false, true} {
		ca := uplinktest.NewAuthority(t)
		behave, nodes := good(t, ca.Leaf(t, gatewayName))
		g := startGateway(t, "127.0.0.1:0", behave)
		s := newScene(t, ca)
		s.volumes.awake = described(record("csi-1", "job"))
		at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		var waiting atomic.Pointer[api.ArchiveWaiting]
		waiting.Store(&api.ArchiveWaiting{Volumes: 1, Bytes: 7, Oldest: at, Newest: at})
		if on {
			s.cfg.Uploads, s.cfg.Archive = NewUploads(), func() api.ArchiveWaiting { return *waiting.Load() }
		}
		s.start(g.port())
		n := next(t, "node", nodes)
		line := next(t, "summary", n.lines)
		if (line.Archive != nil) != on || on && *line.Archive != *waiting.Load() {
			t.Errorf("archive %t: the first line has %+v", on, line.Archive)
		}
		const answer = `{"items":[{"id":"v","number":-1,"sha256":"sum","url":"https://bucket/x","header":{"a":"b"},` +
			`"until":"2026-12-30T16:00:00Z"}]}`
		if !on {
			n.wantAnswer(t, 404, http.MethodPost, api.UploadsPath, answer)
			n.wantAnswer(t, 200, http.MethodPost, api.OwnersPath, sealed)
			if got := keptOwner(s); got != (volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "u"}) {
				t.Errorf("kept %+v, and nobody needs a seal", got)
			}
			continue
		}
		waiting.Store(&api.ArchiveWaiting{})
		for line.Archive == nil || line.Archive.Volumes > 0 {
			line = next(t, "change", n.lines)
		}
		got := make(chan api.UploadAnswer, 1)
		go func() {
			a, err := s.cfg.Uploads.Ask(t.Context(), api.UploadAsk{ID: "v", Seal: "seal", Index: &api.UploadIndex{SHA256: "sum"}}, time.Minute)
			must(t, err)
			got <- a
		}()
		for len(line.Uploads) == 0 {
			line = next(t, "ask", n.lines)
		}
		if a := line.Uploads[0]; a.ID != "v" || a.Index == nil || a.Seal != "seal" {
			t.Errorf("the node asks %+v", a)
		}
		if taken := n.wantAnswer(t, 200, http.MethodPost, api.UploadsPath, answer); strings.TrimSpace(taken) != `{"taken":1}` {
			t.Errorf("answered %s", taken)
		}
		if a := next(t, "answer", got); a.URL != "https://bucket/x" || a.Header["a"] != "b" || a.Until.IsZero() {
			t.Errorf("%+v", a)
		}
		if taken := n.wantAnswer(t, 200, http.MethodPost, api.UploadsPath, answer); strings.TrimSpace(taken) != `{"taken":0}` {
			t.Errorf("answered %s once more", taken)
		}
		n.wantAnswer(t, 405, http.MethodGet, api.UploadsPath, "")
		n.wantAnswer(t, 400, http.MethodPost, api.UploadsPath, `{"items":[{"url":"`+strings.Repeat("x", mostURL+1)+`"}]}`)
		// The seal of an owner is kept with it.
		n.wantAnswer(t, 200, http.MethodPost, api.OwnersPath, sealed)
		if got := keptOwner(s); got != (volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "u", Seal: "sealed"}) {
			t.Errorf("kept %+v", got)
		}
	}
}

// sealed is an answer of a gateway with an archive.
const sealed = `{"items":[{"id":"csi-1","podUID":"uid-job","owner":{"verdict":"Confirmed","namespaceUID":"u"},"seal":"sealed"}]}`

// keptOwner returns the owner that was kept of the volume that it is about.
func keptOwner(s *scene) (owner volume.Owner) {
	s.volumes.set(func() { owner = s.volumes.owners["csi-1"] })
	return owner
}
