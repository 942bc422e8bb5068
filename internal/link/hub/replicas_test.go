package hub

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// TestHereWhileTheAPIServerIsSilent: a replica that does not hear whether a daemon is still there passes nothing on to it.
func TestHereWhileTheAPIServerIsSilent(t *testing.T) {
	t.Parallel()
	s := newStage(t).listen(nil)
	s.node("n1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, test := range []struct {
		heard time.Time
		away  bool
	}{{time.Now(), false}, {time.Now().Add(-believed), true}, {time.Now(), false}} {
		s.cluster.change(func() { s.cluster.heard = test.heard })
		request, err := http.NewRequestWithContext(ctx(t), http.MethodGet, "http://node/v1/volumes", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Here("n1", request)
		if errors.Is(err, ErrAway) != test.away || !test.away && err != nil {
			t.Fatalf("heard %s ago: %v", time.Since(test.heard), err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}

// lookedAt counts how often the other replicas are asked for their nodes.
type lookedAt struct {
	Replicas
	times atomic.Int64
	says  map[string]Elsewhere
}

func (l *lookedAt) Forward() bool          { return true }
func (l *lookedAt) Names() map[string]bool { return nil }
func (l *lookedAt) Has(string) (_, _ bool) { return false, false }

func (l *lookedAt) Look(context.Context, string) map[string]Elsewhere {
	l.times.Add(1)
	return l.says
}

// TestLookAtOthersOnlyForWhatIsAway: with all nodes here no other replica is asked for its own.
func TestLookAtOthersOnlyForWhatIsAway(t *testing.T) {
	t.Parallel()
	s := newStage(t).listen(nil)
	s.node("n1", http.NotFoundHandler(), api.Holding{Namespace: "ci", Volumes: 1})
	others := &lookedAt{}
	s.Replicas = others
	if f := s.Look(ctx(t), "ci"); len(f.Held) != 1 || others.times.Load() != 0 {
		t.Errorf("%+v, asked %d times", f, others.times.Load())
	}
	s.cluster.add("katbox-n2", "u2", "n2")
	if f := s.Look(ctx(t), "ci"); len(f.Missing) != 1 || others.times.Load() != 1 {
		t.Errorf("n2 is away: %+v, asked %d times", f, others.times.Load())
	}
}

// TestNewerAccountOfANode: what another replica knows of a node that is connected here, too, counts where this one knows of nothing.
// That it does not answer there says nothing of here.
func TestNewerAccountOfANode(t *testing.T) {
	t.Parallel()
	s := newStage(t).listen(nil)
	s.node("n1", http.NotFoundHandler(), api.Holding{Namespace: "other", Volumes: 1})
	s.cluster.add("katbox-n2", "u2", "n2") // away, so that the others are asked
	s.Replicas = &lookedAt{says: map[string]Elsewhere{"n1": {Holdings: []api.Holding{{Namespace: "ci", Volumes: 1}}, Skip: NotAnswering}}}
	f := s.Look(ctx(t), "ci")
	if len(f.Held) != 1 || f.Held[0].Conn != s.find("n1") || f.Held[0].Skip != "" || f.Held[0].Holdings[0].Volumes != 1 {
		t.Errorf("%+v", f.Held)
	}
	if f := s.Look(ctx(t), "nobody's"); len(f.Held) != 1 {
		t.Errorf("%+v", f.Held)
	}
}

// TestSumOfUnknown: a sum is as unknown as what is in it, or the volumes of one that says no time would be below a page.
func TestSumOfUnknown(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_790_000_000, 0)
	for _, all := range [][]api.Holding{
		{{Namespace: "a", Volumes: 1, Newest: at}, {Namespace: "b", Volumes: 2}},
		{{Namespace: "a", Volumes: 1}, {Namespace: "b", Volumes: 2, Newest: at}},
	} {
		var h holdings
		if err := h.set(all); err != nil {
			t.Fatal(err)
		}
		if sums := h.sums(); len(sums) != 1 || sums[0].Volumes != 3 || Nanoseconds(sums[0].Newest) != 0 {
			t.Errorf("%+v", sums)
		}
	}
}

// TestUnion: of two accounts of a node the newest volume of each tenant counts, in either order.
func TestUnion(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_790_000_000, 0)
	of := func(uid string, newest time.Time) api.Holding {
		return api.Holding{Namespace: "ci", NamespaceUID: uid, Volumes: 1, Newest: newest}
	}
	a := []api.Holding{of("1", at), of("2", at), of("3", time.Time{})}
	b := []api.Holding{of("1", at.Add(1)), of("2", time.Time{}), of("3", at), of("4", at)}
	want := map[string]int64{"1": at.Add(1).UnixNano(), "2": 0, "3": 0, "4": at.UnixNano()}
	for _, got := range [][]api.Holding{Union(a, b), Union(b, a)} {
		for _, h := range got {
			if Nanoseconds(h.Newest) != want[h.NamespaceUID] {
				t.Errorf("%+v", h)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%+v", got)
		}
	}
	if a[0].Newest != at || b[2].Newest != at || len(Union(nil, b)) != 4 || len(Union(a, nil)) != 3 {
		t.Error("an account was changed")
	}
}
