package replicas_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
)

// TestLossUnderLists: with a replica lost in the middle of lists, all have all nodes: each is connected to two.
func TestLossUnderLists(t *testing.T) {
	var nodes []string
	for i := range 12 {
		nodes = append(nodes, fmt.Sprintf("n%02d", i))
	}
	s := newScene(t, 4, nodes...)
	want := map[string]string{}
	for i, node := range nodes {
		s.connect(node, named(node), s.replicas[i%4], s.replicas[(i+1+i/4)%4])
		want[node] = "csi-" + node
	}
	lost, asked := s.replicas[2], s.replicas[0]
	f := asked.Look(t.Context(), "ci")
	lost.lose() // after it has said what it has, and before it is asked for that
	if got := list(t, f); !maps.Equal(got, want) {
		t.Errorf("the list under which it was lost has %v", got)
	}
	for range 3 {
		if got := list(t, asked.Look(t.Context(), "ci")); !maps.Equal(got, want) {
			t.Errorf("a list afterwards has %v", got)
		}
	}
}

// TestLostStream: a stream that runs over a replica that is lost breaks, and does not end as if it were whole; begun again it goes on
// over the other one.
func TestLostStream(t *testing.T) {
	s := newScene(t, 3, "n1")
	var streams atomic.Int64
	s.connect("n1", func(w http.ResponseWriter, r *http.Request) {
		streams.Add(1)
		for range 3 {
			_, _ = io.WriteString(w, "part ")
			_ = http.NewResponseController(w).Flush()
			if streams.Load() == 1 {
				<-r.Context().Done()
			}
		}
	}, s.replicas[1], s.replicas[2])
	reader := s.replicas[0]
	reader.Look(t.Context(), "ci")
	open := func() *http.Response {
		t.Helper()
		conn, ok := reader.Get("n1")
		if !ok {
			t.Fatal("n1 is away")
		}
		answer, err := conn.Client().Send(t.Context(), http.MethodGet, api.BytesPath("csi-1"), nil, nil)
		must(t, err)
		return answer
	}
	answer := open()
	_, err := io.ReadFull(answer.Body, make([]byte, 5))
	must(t, err)
	first, second := s.replicas[1], s.replicas[2]
	if second.address().Compare(first.address()) < 0 { // of two that have a node the first by address is asked
		first = second
	}
	first.lose()
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("a stream that was cut ends as if it were whole, with %q", text)
	}
	again := open()
	if text, err := io.ReadAll(again.Body); err != nil || string(text) != "part part part " {
		t.Errorf("begun again it has %q, %v", text, err)
	}
}

// TestChangeIsSentOnce: what changes something goes to another replica only if nothing was sent.
func TestChangeIsSentOnce(t *testing.T) {
	s := newScene(t, 3, "n1")
	var changes atomic.Int64
	s.connect("n1", func(http.ResponseWriter, *http.Request) {
		changes.Add(1)
		panic(http.ErrAbortHandler)
	}, s.replicas[1], s.replicas[2])
	reader := s.replicas[0]
	reader.Look(t.Context(), "ci")
	conn, _ := reader.Get("n1")
	if err := conn.Client().Purge(t.Context(), "csi-1", "why"); err == nil || errors.Is(err, hub.ErrAway) {
		t.Errorf("a deletion whose answer was lost: %v", err)
	}
	if n := changes.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	s.replicas[1].lose()
	reader.Look(t.Context(), "ci") // until it is noticed, it is not certain that nothing was sent
	if err := conn.Client().Purge(t.Context(), "csi-1", "why"); err == nil || errors.Is(err, hub.ErrAway) {
		t.Errorf("a deletion by the replica that is left: %v", err)
	}
	if n := changes.Load(); n != 2 {
		t.Errorf("it was sent %d times in all, once by the replica that is left", n-1)
	}
}

// TestHandshakeThatFails sends nothing: what changes something may be asked for over another connection.
func TestHandshakeThatFails(t *testing.T) {
	s := newScene(t, 2, "n1")
	s.connect("n1", named("n1"), s.replicas[0])
	reader := s.replicas[1]
	reader.Look(t.Context(), "ci")
	node, ok := reader.Get("n1")
	if !ok {
		t.Fatal("n1 is away")
	}
	address := s.replicas[0].address()
	s.replicas[0].lose()
	reader.others.Begin(t.Context()) // finds the old connection broken
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", address.String())
	must(t, err)
	defer l.Close()
	takeEach(l, func(net.Conn) {})
	if _, err := node.Client().Send(t.Context(), http.MethodDelete, "/v1/volumes/csi-1", nil, nil); !errors.Is(err, hub.ErrAway) {
		t.Errorf("%v, want %v", err, hub.ErrAway)
	}
}
