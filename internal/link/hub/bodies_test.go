package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
)

// taker plays a node as it takes requests: it refuses one that is too long, or that has something wrong in it.
type taker struct {
	mu       sync.Mutex
	taken    []string
	requests int
	longest  int
}

// take takes the items of a request, if no text in it is wrong.
func (k *taker) take(w http.ResponseWriter, r *http.Request, ids func(body []byte) []string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests++
	k.longest = max(k.longest, len(body))
	all := ids(body)
	if err != nil || slices.Contains(all, "wrong") {
		http.Error(w, "there is something wrong", http.StatusBadRequest)
		return
	}
	k.taken = append(k.taken, all...)
	_, _ = io.WriteString(w, "{}")
}

// TestOneAnswerPoisonsNoOthers: of 50 questions about owners one has an answer that no node takes; the 49 others
// are answered.
func TestOneAnswerPoisonsNoOthers(t *testing.T) {
	for name, poison := range map[string]api.OwnerAnswer{
		"too long": {ID: "long", Owner: api.Owner{Verdict: "Confirmed", JobIndex: strings.Repeat("x", 2<<20)}},
		"wrong":    {ID: "wrong", Owner: api.Owner{Verdict: "Confirmed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t).listen(nil)
			s.cluster.onAsk = func(_ string, asks []api.OwnerAsk) (answers []api.OwnerAnswer) {
				for _, a := range asks {
					if answers = append(answers, api.OwnerAnswer{ID: a.ID, Owner: api.Owner{Verdict: "Denied"}}); a.ID == "v7" {
						answers[len(answers)-1] = poison
					}
				}
				return answers
			}
			node := &taker{}
			conn, answer := s.dial(request("n1", s.cluster.add("p1", "u1", "n1")))
			if answer.StatusCode != http.StatusSwitchingProtocols {
				t.Fatal(answer.Status)
			}
			p := newPlayer(conn, nil)
			p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != api.OwnersPath {
					p.ServeHTTP(w, r)
					return
				}
				node.take(w, r, func(body []byte) (ids []string) {
					var answers api.OwnerAnswers
					_ = json.Unmarshal(body, &answers) // what is cut has no items
					for _, a := range answers.Items {
						ids = append(ids, a.ID)
					}
					return ids
				})
			}))
			t.Cleanup(p.end)
			var asks []api.OwnerAsk
			for i := range asksAtOnce {
				asks = append(asks, api.OwnerAsk{ID: fmt.Sprint("v", i)})
			}
			p.say(api.Summary{Full: true, Asks: asks})
			s.wait("the answers", func() bool {
				node.mu.Lock()
				defer node.mu.Unlock()
				return len(node.taken) == asksAtOnce-1
			})
			s.wait("the end", func() bool {
				c := s.find("n1").current()
				c.mu.Lock()
				defer c.mu.Unlock()
				return !c.asking
			})
			slices.Sort(node.taken)
			if len(slices.Compact(node.taken)) != asksAtOnce-1 || slices.Contains(node.taken, poison.ID) {
				t.Errorf("the node has taken %q", node.taken)
			}
			if node.longest > mostBody || node.requests > 16 {
				t.Errorf("%d requests, the longest of %d bytes", node.requests, node.longest)
			}
		})
	}
}

// TestOneOutcomePoisonsNoOthers: an outcome that no node takes keeps none of other pods from it.
func TestOneOutcomePoisonsNoOthers(t *testing.T) {
	s := newStage(t).listen(nil)
	node := &taker{}
	s.node("n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		node.take(w, r, func(body []byte) (ids []string) {
			var told api.Outcomes
			_ = json.Unmarshal(body, &told) // what is cut has no items
			for _, o := range told.Items {
				ids = append(ids, o.PodUID)
			}
			return ids
		})
	}))
	var all api.Outcomes
	for i := range 500 {
		all.Items = append(all.Items, api.PodOutcome{PodUID: fmt.Sprint("u", i)})
	}
	all.Items[0].PodUID = "wrong"
	all.Items[499].Volumes = []string{strings.Repeat("x", 2<<20)}
	if err := s.Tell(t.Context(), "n1", all); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
	if len(node.taken) != 498 || node.longest > mostBody {
		t.Errorf("the node has taken %d in requests of at most %d bytes", len(node.taken), node.longest)
	}
	if err := s.Tell(t.Context(), "n1", api.Outcomes{Items: all.Items[1:499]}); err != nil {
		t.Errorf("the others: %v", err)
	}
}

// TestPartsEndWithTheNode: where a node is gone, or takes nothing at all, its parts are not tried one by one.
func TestPartsEndWithTheNode(t *testing.T) {
	gone := errors.New("gone")
	for _, tt := range []struct {
		name string
		err  func(call int) error
		want error
		most int
	}{
		{"gone", func(int) error { return gone }, gone, 1},
		{"takes nothing", func(int) error { return ErrRefused }, ErrRefused, 1},
		{"goes meanwhile", func(call int) error { return []error{errBad, gone}[min(call, 1)] }, gone, 2},
		{"goes later", func(call int) error { return []error{errBad, errBad, nil, gone}[min(call, 3)] }, gone, 4},
	} {
		calls := 0
		err := inParts(make([]int, 64), func([]int) error {
			calls++
			return tt.err(calls - 1)
		})
		if !errors.Is(err, tt.want) || errors.Is(err, errBad) || calls > tt.most {
			t.Errorf("%s: %v after %d calls", tt.name, err, calls)
		}
	}
}
