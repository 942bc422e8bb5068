package hub

import (
	"errors"
	"net/http"
	"testing"
	"time"
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
