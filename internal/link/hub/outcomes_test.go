package hub

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestTell: a node is told over its newest connection, and what it answers says whether to try again.
func TestTell(t *testing.T) {
	s := newStage(t)
	connected := make(chan string, 10)
	s.Joined = func(node string) { connected <- node }
	s.listen(nil)
	how := api.Outcomes{Items: []api.PodOutcome{{PodUID: "u", Outcome: "Failed", Volumes: []string{"scratch"}}}}
	if err := s.Tell(t.Context(), "n1", how); !errors.Is(err, ErrAway) {
		t.Errorf("a node that has never connected: %v", err)
	}
	code := make(chan int, 1)
	told := make(chan api.Outcomes, 10)
	p := s.connect("n1", s.cluster.add("p1", "u1", "n1"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body api.Outcomes
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || r.URL.Path != api.OutcomesPath {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		told <- body
		w.WriteHeader(<-code)
	}))
	p.say(api.Summary{Full: true})
	select {
	case node := <-connected:
		if node != "n1" {
			t.Errorf("%s has connected", node)
		}
	case <-time.After(patience):
		t.Fatal("no node has connected")
	}
	for answer, want := range map[int]error{200: nil, 404: ErrRefused, 400: ErrRefused, 429: errAgain, 500: errAgain} {
		code <- answer
		err := s.Tell(t.Context(), "n1", how)
		switch {
		case want == nil && err != nil, errors.Is(want, ErrRefused) != errors.Is(err, ErrRefused), want != nil && err == nil,
			errors.Is(err, ErrAway):
			t.Errorf("%d: %v", answer, err)
		}
		if got := <-told; len(got.Items) != 1 || got.Items[0].PodUID != "u" {
			t.Errorf("told %+v", got)
		}
	}
	s.find("n1").closeAll(errClosed)
	if err := s.Tell(t.Context(), "n1", how); !errors.Is(err, ErrAway) {
		t.Errorf("a node that has gone: %v", err)
	}
}

// TestTellEnds: a node that keeps how pods end is told all of it, another one their outcomes alone.
func TestTellEnds(t *testing.T) {
	s := newStage(t).listen(nil)
	how := api.Outcomes{Items: []api.PodOutcome{
		{PodUID: "u", Outcome: "Failed", Volumes: []string{"scratch"}, End: json.RawMessage(`{"uid":"u"}`)}}}
	for node, want := range map[string]string{"keeps": `{"uid":"u"}`, "other": ""} {
		told := make(chan api.Outcomes, 1)
		if !s.KeepsEnds(node) {
			t.Errorf("%s, which is not connected, keeps no ends", node)
		}
		ask := request(node, s.cluster.add("p-"+node, "u-"+node, node))
		if want != "" {
			ask.Header.Set(api.HeaderEnds, "true")
		}
		conn, answer := s.dial(ask)
		if answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(answer.Status)
		}
		p := serve(conn, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var body api.Outcomes
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			told <- body
		}))
		<-p.used
		if got := s.KeepsEnds(node); got != (want != "") {
			t.Errorf("%s keeps ends: %t", node, got)
		}
		if err := s.Tell(t.Context(), node, how); err != nil {
			t.Error(err)
		}
		if got := <-told; len(got.Items) != 1 || got.Items[0].PodUID != "u" || string(got.Items[0].End) != want {
			t.Errorf("%s is told %+v", node, got)
		}
	}
	if how.Items[0].End == nil {
		t.Error("what others are told is lost")
	}
	s.find("other").closeAll(errClosed)
	if !s.KeepsEnds("other") {
		t.Error("a node that is gone may keep ends when it comes again")
	}
}

// errAgain stands for an error after which the node is told again.
var errAgain = errors.New("again")
