package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// signing signs as a function says.
type signing func(node string, asks []api.UploadAsk) []api.UploadAnswer

func (s signing) Sign(_ context.Context, node string, asks []api.UploadAsk) []api.UploadAnswer {
	return s(node, asks)
}

// TestUploads: what a node wants to upload is answered, in the name of its token; what is too long is not kept, and what nobody
// reads of it is dropped.
func TestUploads(t *testing.T) {
	s := newStage(t).listen(nil)
	s.Uploads = signing(func(node string, asks []api.UploadAsk) (answers []api.UploadAnswer) {
		for _, a := range asks {
			answer := api.UploadAnswer{ID: a.ID, Number: a.Number(), URL: node}
			if a.Index != nil && a.Index.Shown.Terms != nil {
				answer.Refused = "terms are kept"
			}
			answers = append(answers, answer)
		}
		return answers
	})
	got := make(chan api.UploadAnswer, 10)
	p := s.connect("n1", s.cluster.add("p1", "u1", "n1"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answers api.UploadAnswers
		if r.URL.Path != api.UploadsPath || json.NewDecoder(r.Body).Decode(&answers) != nil {
			t.Errorf("%s", r.URL.Path)
		}
		for _, a := range answers.Items {
			got <- a
		}
		fmt.Fprintln(w, `{"taken":1}`)
	}))
	piece := func(number int) *api.UploadPiece { return &api.UploadPiece{Number: number} }
	p.say(api.Summary{Full: true, Uploads: []api.UploadAsk{{ID: "a", Piece: piece(3)}}})
	p.say(api.Summary{Uploads: []api.UploadAsk{
		{ID: strings.Repeat("b", mostField+1), Piece: piece(0)}, {ID: "c", Seal: strings.Repeat("s", mostField+1)},
		{ID: "d", Index: &api.UploadIndex{Shown: api.Volume{Pod: strings.Repeat("p", mostField+1)}}},
		{ID: "e", Index: &api.UploadIndex{Shown: api.Volume{Terms: &api.Terms{Retain: strings.Repeat("x", 1000)}}}},
	}})
	for _, want := range []api.UploadAnswer{{ID: "a", Number: 3, URL: "n1"}, {ID: "e", Number: api.UploadIndexNumber, URL: "n1"}} {
		select {
		case a := <-got:
			if a.ID != want.ID || a.Number != want.Number || a.URL != want.URL || a.Refused != "" {
				t.Errorf("%+v, want %+v", a, want)
			}
		case <-time.After(patience):
			t.Fatalf("no answer %+v", want)
		}
	}
}

// TestUploadBounds: of a node that asks without end a few asks wait, one of each object, and the summaries are still read. Without an
// archive nothing is kept.
func TestUploadBounds(t *testing.T) {
	s := newStage(t).listen(nil)
	var mu sync.Mutex
	most, calls := 0, 0
	release := make(chan struct{})
	s.Uploads = signing(func(_ string, asks []api.UploadAsk) []api.UploadAnswer {
		mu.Lock()
		most, calls = max(most, len(asks)), calls+1
		mu.Unlock()
		<-release
		return nil
	})
	p := s.connect("n1", s.cluster.add("p1", "u1", "n1"), nil)
	p.say(api.Summary{Full: true})
	for line := range 20 {
		var many []api.UploadAsk
		for i := range mostUploadLine {
			many = append(many, api.UploadAsk{ID: "a", Piece: &api.UploadPiece{Number: i}})
		}
		p.say(api.Summary{Uploads: many})
		if line > 0 {
			continue
		}
		// What comes from now on waits: nothing has taken it by the end.
		s.wait("the first line", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return calls == 1
		})
	}
	p.say(api.Summary{Holdings: []api.Holding{{Namespace: "last", Volumes: 1}}})
	s.wait("the last line", func() bool { return s.holds("last") })
	c := s.find("n1").current()
	c.mu.Lock()
	if len(c.uploads) != mostUploads {
		t.Errorf("%d wait", len(c.uploads))
	}
	c.mu.Unlock()
	close(release)
	s.wait("the end", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.signing
	})
	mu.Lock()
	defer mu.Unlock()
	if most != mostUploads || calls != 2 {
		t.Errorf("%d at once, %d times", most, calls)
	}
	// One that has no archive.
	s.Uploads = nil
	c.upload([]api.UploadAsk{{ID: "a", Piece: &api.UploadPiece{}}})
	if len(c.uploads) != 0 || c.signing {
		t.Error("an ask is kept without an archive")
	}
}
