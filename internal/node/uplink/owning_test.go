package uplink

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// TestUnsentAnswersDelayNoOthers: a gateway that begins to send its answers and hangs does not keep
// another one from sending its own.
func TestUnsentAnswersDelayNoOthers(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behaveA, nodesA := good(t, ca.Leaf(t, gatewayName))
	behaveB, nodesB := good(t, ca.Leaf(t, gatewayName))
	a, b := pair(t, behaveA, behaveB)
	s := newScene(t, ca)
	s.resolves(nil, a.address(), b.address())
	s.volumes.awake = described(record("csi-1", "job"))
	u := s.start(a.port())
	n, other := next(t, "node", nodesA), next(t, "node", nodesB)
	var requests sync.WaitGroup
	body, unsent := io.Pipe()
	for range 2 * mostOwning {
		requests.Go(func() {
			if answer, err := n.Ask(http.MethodPost, api.OwnersPath, body); err == nil {
				answer.Body.Close()
			}
		})
	}
	eventually(t, "the node waits for answers", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		for c := range u.connections {
			if len(c.receiving) == mostOwning {
				return true
			}
		}
		return false
	})
	if len(u.owning) > 0 {
		t.Error("what was not received takes a place")
	}
	other.wantAnswer(t, 200, http.MethodPost, api.OwnersPath,
		`{"items":[{"id":"csi-1","podUID":"uid-job","owner":{"verdict":"Denied"}}]}`)
	s.volumes.set(func() {
		if got := s.volumes.owners["csi-1"]; got.Verdict != volume.Denied {
			t.Errorf("kept %+v", got)
		}
	})
	unsent.CloseWithError(io.ErrUnexpectedEOF)
	stop(t, u)
	requests.Wait()
}
