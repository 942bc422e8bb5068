package uplink

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// TestRank: each of four replicas is among the first two of about half of the nodes, and when one comes, or goes, no node
// changes more than it has to.
func TestRank(t *testing.T) {
	var all []netip.AddrPort
	for i := range 5 {
		all = append(all, netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:9443", i+1)))
	}
	four := all[:4]
	of := map[netip.AddrPort]int{}
	const nodes = 4000
	moved := 0
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		before, after := rank(node, four)[:enough], rank(node, all)[:enough]
		for _, a := range before {
			of[a]++
			if !slices.Contains(after, a) {
				moved++
				if !slices.Contains(after, all[4]) {
					t.Fatalf("%s goes from %v to %v, although only %v has come", node, before, after, all[4])
				}
			}
		}
	}
	for a, n := range of {
		if n < nodes*45/100 || n > nodes*55/100 {
			t.Errorf("%s has %d of %d nodes", a, n, nodes)
		}
	}
	if moved < nodes*35/100 || moved > nodes*45/100 {
		t.Errorf("%d of %d nodes have moved, want two of five", moved, nodes)
	}
}

// replicas are gateways with the same port.
type replicas struct {
	all   map[netip.Addr]*gateway
	nodes map[netip.Addr]chan *node
	port  string
}

// startReplicas starts some, which say who they are, with names of one's choice.
func startReplicas(t *testing.T, ca *uplinktest.Authority, names ...string) *replicas {
	t.Helper()
	for range 50 {
		r := &replicas{all: map[netip.Addr]*gateway{}, nodes: map[netip.Addr]chan *node{}}
		var listeners []net.Listener
		for i := range names {
			port := "0"
			if i > 0 {
				_, port, _ = net.SplitHostPort(listeners[0].Addr().String())
			}
			l, err := net.Listen("tcp", net.JoinHostPort(fmt.Sprintf("127.0.0.%d", i+1), port))
			if err != nil {
				break
			}
			listeners, r.port = append(listeners, l), port
		}
		if len(listeners) < len(names) {
			for _, l := range listeners {
				l.Close()
			}
			continue
		}
		for i, l := range listeners {
			behave, nodes := goodAs(t, ca.Leaf(t, gatewayName), names[i])
			g := serveGateway(t, l, behave)
			r.all[g.address()], r.nodes[g.address()] = g, nodes
		}
		return r
	}
	t.Fatal("no port is free on all addresses")
	return nil
}

// addresses are those of all.
func (r *replicas) addresses() []netip.Addr { return slices.Collect(maps.Keys(r.all)) }

// at returns where a node is connected.
func at(u *Uplink) (all []netip.Addr) {
	for _, s := range u.States() {
		if !s.Since.IsZero() {
			all = append(all, netip.MustParseAddrPort(s.Address).Addr())
		}
	}
	return all
}

// ranked is the order of a node.
func (r *replicas) ranked(node string) (all []netip.Addr) {
	var at []netip.AddrPort
	for _, g := range r.all {
		at = append(at, netip.MustParseAddrPort(g.listener.Addr().String()))
	}
	for _, a := range rank(node, at) {
		all = append(all, a.Addr())
	}
	return all
}

func same(a, b []netip.Addr) bool {
	return maps.Equal(setOf(a), setOf(b))
}

func setOf(all []netip.Addr) map[netip.Addr]bool {
	set := map[netip.Addr]bool{}
	for _, a := range all {
		set[a] = true
	}
	return set
}

// TestTwoOfFour: a node connects to the first two of four, to the third instead of one that is lost, and goes back when that is
// there again; but not while something runs on what it has.
func TestTwoOfFour(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	r := startReplicas(t, ca, uplinktest.Forwarding("a"), uplinktest.Forwarding("b"), uplinktest.Forwarding("c"), uplinktest.Forwarding("d"))
	s := newScene(t, ca)
	streaming, end := make(chan struct{}, 1), make(chan struct{})
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("long") {
			_ = http.NewResponseController(w).Flush()
			streaming <- struct{}{}
			<-end
		}
		_, _ = io.WriteString(w, "all")
	})
	s.resolves(nil, r.addresses()...)
	u := s.start(r.port)
	order := r.ranked("n1")
	eventually(t, "two connections", func() bool { return same(at(u), order[:2]) && u.connected() })
	next(t, "node", r.nodes[order[0]]).wantAnswer(t, 200, http.MethodGet, "/v1/volumes", "")
	for _, a := range order[2:] {
		if n := r.all[a].accepted(); n > 0 {
			t.Errorf("%s, which is not among the first two, has seen %d connections", a, n)
		}
	}

	lost := r.all[order[1]]
	address, behave := lost.listener.Addr().String(), lost.behave
	lost.stop()
	eventually(t, "the third one has its turn", func() bool { return same(at(u), []netip.Addr{order[0], order[2]}) })
	third := next(t, "node", r.nodes[order[2]])
	answer := make(chan string, 1)
	go func() { answer <- third.wantAnswer(t, 200, http.MethodGet, "/v1/volumes/x/bytes?long", "") }()
	next(t, "stream", streaming)

	startGateway(t, address, behave)
	eventually(t, "the second one is back, and the third not used any more", func() bool { return same(at(u), order[:2]) })
	if third.ended() {
		t.Error("the connection has ended, and a stream runs on it")
	}
	close(end)
	if got := next(t, "answer", answer); got != "all" {
		t.Errorf("the stream was %q", got)
	}
	eventually(t, "the third connection ends", third.ended)
	eventually(t, "two connections", func() bool { return same(at(u), order[:2]) })
}

// TestAllOfFour: where one replica does not ask the others, the node connects to all; and two addresses of one count once.
func TestAllOfFour(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	for name, names := range map[string][]string{
		"older ones": {"a", "b", "c", ""},
		"one of two addresses": {
			uplinktest.Forwarding("a"), uplinktest.Forwarding("a"), uplinktest.Forwarding("a"), uplinktest.Forwarding("b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := startReplicas(t, ca, names...)
			s := newScene(t, ca)
			s.resolves(nil, r.addresses()...)
			u := s.start(r.port)
			if name == "older ones" {
				eventually(t, "all are connected", func() bool { return len(at(u)) == len(names) && u.connected() })
				return
			}
			// Which of the three it is, is a matter of the order.
			last := netip.MustParseAddr("127.0.0.4")
			eventually(t, "both are connected", func() bool { return len(at(u)) == 2 && slices.Contains(at(u), last) && u.connected() })
		})
	}
}

// TestFirstTwoAway: a node whose first two replicas are away has a connection to the third.
func TestFirstTwoAway(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	r := startReplicas(t, ca, uplinktest.Forwarding("a"), uplinktest.Forwarding("b"), uplinktest.Forwarding("c"))
	s := newScene(t, ca)
	s.pace.settled = time.Millisecond
	s.resolves(nil, r.addresses()...)
	order := r.ranked("n1")
	for _, a := range order[:2] {
		r.all[a].stop()
	}
	u := s.start(r.port)
	eventually(t, "the only one that is there", func() bool { return same(at(u), order[2:]) })
	if u.connected() {
		t.Error("the node has one of the two connections that it is to have, and does not look for more")
	}
	next(t, "node", r.nodes[order[2]]).wantAnswer(t, 200, http.MethodGet, "/v1/volumes", "")
}
