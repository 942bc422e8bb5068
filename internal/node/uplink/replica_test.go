package uplink

import (
	"net/http"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// TestReplicaWithTwoAddresses gets one connection, which stays: each new one would end the one before. When it is lost, the
// other address has its turn.
func TestReplicaWithTwoAddresses(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behaveA, nodesA := goodAs(t, ca.Leaf(t, gatewayName), "one")
	behaveB, nodesB := goodAs(t, ca.Leaf(t, gatewayName), "one")
	a, b := pair(t, behaveA, behaveB)
	s := newScene(t, ca)
	s.pace.missed = time.Millisecond
	s.resolves(nil, a.address(), b.address())
	u := s.start(a.port())
	standsBy := func() (n int) {
		for _, state := range u.States() {
			if state.StandsBy {
				n++
			}
		}
		return n
	}
	eventually(t, "one address stands by", func() bool { return standsBy() == 1 })
	accepted := a.accepted() + b.accepted()
	var first *node
	var left *gateway
	select {
	case first = <-nodesA:
		left = a
	case first = <-nodesB:
		left = b
	case <-time.After(patience):
		t.Fatal("no connection is used")
	}
	for range 100 { // the one that stands by looks again and again meanwhile
		first.wantAnswer(t, 200, http.MethodGet, "/v1/volumes", "")
	}
	metricstest.Of(t, s.cfg.Metrics).Want(t, "one connection", metricstest.Values{"katbox_gateway_connected": 1})
	if now := a.accepted() + b.accepted(); now != accepted || accepted > 2 {
		t.Errorf("%d connections, and then %d", accepted, now)
	}
	if !u.connected() {
		t.Error("the node takes an address that stands by for one without a connection")
	}
	left.stop()
	from := nodesA
	if left == a {
		from = nodesB
	}
	next(t, "node at the other address", from).wantAnswer(t, 200, http.MethodGet, "/v1/volumes", "")
}

// TestReplicasOfOtherNames each get a connection, and so does one that does not say who it is.
func TestReplicasOfOtherNames(t *testing.T) {
	for name, replicas := range map[string][2]string{
		"two": {"one", "two"}, "neither says": {"", ""}, "one says": {"one", ""}, "no names": {"o n e", "o n e"},
	} {
		t.Run(name, func(t *testing.T) {
			ca := uplinktest.NewAuthority(t)
			behaveA, nodesA := goodAs(t, ca.Leaf(t, gatewayName), replicas[0])
			behaveB, nodesB := goodAs(t, ca.Leaf(t, gatewayName), replicas[1])
			a, b := pair(t, behaveA, behaveB)
			s := newScene(t, ca)
			s.resolves(nil, a.address(), b.address())
			s.start(a.port())
			next(t, "node", nodesA)
			next(t, "node", nodesB)
		})
	}
}
