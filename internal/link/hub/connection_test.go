package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// held returns what the only node with volumes of a namespace holds of it.
func (s *stage) held(namespace string) []api.Holding {
	if held := s.With(namespace); len(held) == 1 {
		return held[0].Holdings
	}
	return nil
}

// holds reports whether the only connected node has said what it holds of a namespace. One that has
// not spoken yet may hold anything.
func (s *stage) holds(namespace string) bool {
	held := s.held(namespace)
	return len(held) == 1 && held[0].Namespace == namespace
}

// TestSummaries: what a node holds is what its summaries say, the first one and the changes.
func TestSummaries(t *testing.T) {
	s := newStage(t).listen(nil)
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	p := s.node("n1", nil,
		api.Holding{Namespace: "b", Volumes: 1, Newest: at(5), Oldest: at(5)},
		api.Holding{Namespace: "a", NamespaceUID: "old", Verdict: "Confirmed", Volumes: 2, Newest: at(9), Oldest: at(7)},
		api.Holding{Namespace: "a", NamespaceUID: "new", Verdict: "Confirmed", Volumes: 3, Newest: at(11), Oldest: at(10)},
		api.Holding{Volumes: 4, Newest: at(1), Oldest: at(1)},
	)
	a := s.held("a")
	if len(a) != 2 || a[0].NamespaceUID != "new" || a[0].Volumes != 3 || a[1].NamespaceUID != "old" ||
		!a[1].Newest.Equal(at(9)) || !a[1].Oldest.Equal(at(7)) {
		t.Fatalf("a: %+v", a)
	}
	sums := s.held("")
	if len(sums) != 2 || sums[0].Namespace != "" || sums[0].Volumes != 4 ||
		sums[1].Namespace != SumOfNamespaces || sums[1].Volumes != 6 || !sums[1].Newest.Equal(at(11)) || !sums[1].Oldest.Equal(at(5)) {
		t.Fatalf("sums: %+v", sums)
	}

	// A sign of life, a change, one that is new, and one that is gone.
	p.say(api.Summary{Time: at(1)})
	p.say(api.Summary{Holdings: []api.Holding{
		{Namespace: "a", NamespaceUID: "old", Verdict: "Confirmed"}, {Namespace: "b", Volumes: 8}, {Namespace: "c", Volumes: 9}, {},
	}})
	s.wait("the change", func() bool { return s.holds("c") })
	if a, b, sums := s.held("a"), s.held("b"), s.held(""); len(a) != 1 || a[0].NamespaceUID != "new" ||
		b[0].Volumes != 8 || sums[0].Volumes != 20 {
		t.Fatalf("a: %+v, b: %+v, sums: %+v", a, b, sums)
	}

	// Namespaces that the node does not count each may be any.
	p.say(api.Summary{Full: true, Holdings: []api.Holding{{Namespace: "*", Volumes: 5}, {Namespace: "a", Volumes: 1}}})
	s.wait("the new summary", func() bool { return len(s.held("c")) == 1 && s.held("c")[0].Namespace == "*" })
	if a, sums := s.held("a"), s.held(""); len(a) != 2 || len(sums) != 2 || sums[0].Namespace != "*" || sums[1].Volumes != 1 {
		t.Fatalf("a: %+v, sums: %+v", a, sums)
	}
	p.say(api.Summary{Full: true})
	s.wait("the empty summary", func() bool { return len(s.With("")) == 0 })
}

// TestLiars: a node that sends what no daemon sends is cut off, and what it sent is forgotten.
func TestLiars(t *testing.T) {
	many := func(n int, entry string) string { return "[" + strings.Repeat(entry+",", n-1) + entry + "]" }
	for name, lie := range map[string]string{
		"a line that does not end":  strings.Repeat("x", mostLine+1024),
		"an endless list":           `{"full":true,"holdings":[` + strings.Repeat(`{"namespace":"a"},`, mostLine/18+100),
		"a million holdings":        `{"full":true,"holdings":` + many(200_000, "0") + "}\n",
		"empty holdings":            `{"full":true,"holdings":` + many(mostHoldings+1, "{}") + "}\n",
		"nulls":                     `{"full":true,"holdings":` + many(mostHoldings+1, "null") + "}\n",
		"too many questions":        `{"asks":` + many(mostAsks+1, "{}") + "}\n",
		"a namespace twice":         `{"full":true,"holdings":[{"namespace":"a","volumes":1},{"namespace":"a","volumes":2}]}` + "\n",
		"a negative number":         `{"full":true,"holdings":[{"namespace":"a","volumes":-1}]}` + "\n",
		"an absurd number":          `{"full":true,"holdings":[{"namespace":"a","volumes":9000000000000000000}]}` + "\n",
		"no number":                 `{"full":true,"holdings":[{"namespace":"a","volumes":"1"}]}` + "\n",
		"a long namespace":          `{"full":true,"holdings":[{"namespace":"` + strings.Repeat("a", 1000) + `","volumes":1}]}` + "\n",
		"a long UID":                `{"full":true,"holdings":[{"namespaceUID":"` + strings.Repeat("a", 1000) + `","volumes":1}]}` + "\n",
		"an unknown verdict":        `{"full":true,"holdings":[{"namespace":"a","verdict":"Maybe","volumes":1}]}` + "\n",
		"changes before the whole":  `{"holdings":[{"namespace":"a","volumes":1}]}` + "\n",
		"a change of a lie":         `{"full":true}` + "\n" + `{"holdings":[{"namespace":"a","volumes":-1}]}` + "\n",
		"not JSON":                  "hello\n",
		"an empty line":             "\n",
		"a list":                    "[]\n",
		"a number of holdings":      `{"full":true,"holdings":7}` + "\n",
		"deep":                      `{"x":` + strings.Repeat("[", 100_000) + "\n",
		"more and more by and by":   growing(),
		"the end, in a proper line": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t).listen(nil)
			token := s.cluster.add("p1", "u1", "n1")
			p := s.connect("n1", token, nil)
			if p.lines <- lie; lie == "" {
				close(p.lines)
			}
			p.isEnded(t)
			s.wait("the node to be missing", func() bool { return len(s.With("a")) == 0 && len(s.Missing()) == 1 })
		})
	}
}

// growing returns changes that are each small enough, and together too many.
func growing() string {
	var b strings.Builder
	b.WriteString(`{"full":true}` + "\n")
	for part := range 3 {
		b.WriteString(`{"holdings":[`)
		for i := range mostHoldings - 1 {
			fmt.Fprintf(&b, `{"namespace":"n%d-%d","volumes":1},`, part, i)
		}
		b.WriteString(`{"namespace":"a","volumes":1}]}` + "\n")
	}
	return b.String()
}

// TestNoSummary: a node that answers the request for summaries with something else is cut off.
func TestNoSummary(t *testing.T) {
	s := newStage(t).listen(nil)
	conn, answer := s.dial(request("n1", s.cluster.add("p1", "u1", "n1")))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer.Status)
	}
	p := serveWith(conn, http.NotFoundHandler())
	defer p.end()
	p.isEnded(t)
}

// TestNoHTTP2: a node that does not speak HTTP/2 is cut off.
func TestNoHTTP2(t *testing.T) {
	s := newStage(t).listen(nil)
	conn, _ := s.dial(request("n1", s.cluster.add("p1", "u1", "n1")))
	if _, err := io.WriteString(conn, strings.Repeat("HTTP/1.1 200 OK\r\n\r\n", 100)); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection stays open")
	}
	s.wait("the node to be missing", func() bool { return len(s.Missing()) == 1 })
}

// TestBigAnswers: what a node answers is bounded, and the error says so.
func TestBigAnswers(t *testing.T) {
	s := newStage(t).listen(nil)
	s.node("n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("pod") {
		case "entries":
			_, _ = io.WriteString(w, `{"items":[`+strings.Repeat("{},", 1000)+`{}]}`)
		case "bytes":
			_, _ = io.WriteString(w, `{"items":[{"id":"`)
			for range 5 << 4 {
				_, _ = io.WriteString(w, strings.Repeat("a", 64<<10))
			}
		case "headers":
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("a", 1024))
			}
		}
	}))
	conn, _ := s.Get("n1")
	for _, tt := range []struct{ pod, says string }{
		{"entries", "more than the 8"}, {"bytes", "longer than"},
		{"headers", ""}, // ends the connection, perhaps
	} {
		list, err := conn.Client().List(ctx(t), api.Query{Pod: tt.pod, Limit: 8})
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "n1") {
			t.Errorf("%s: %d volumes, %v", tt.pod, len(list.Items), err)
		}
	}
}

// TestTwoConnections: the newest connection is used; what runs on the older one goes on, and then
// that is closed.
func TestTwoConnections(t *testing.T) {
	s := newStage(t).listen(nil)
	running, finish := make(chan struct{}), make(chan struct{})
	first := s.node("n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first,")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == api.BytesPath("slow") {
			close(running)
			<-finish
		}
		_, _ = io.WriteString(w, "done")
	}), api.Holding{Namespace: "a", Volumes: 1})
	conn, _ := s.Get("n1")
	slow, err := conn.Client().Send(ctx(t), http.MethodGet, api.BytesPath("slow"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	<-running

	second := s.connect("n1", "token-uid-n1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "second")
	}))
	if h := s.held("a"); len(h) != 1 || h[0].Namespace != "a" {
		t.Errorf("until the new connection has said what the node holds, that is unknown: %+v", h)
	}
	get := func() string {
		answer, err := conn.Client().Send(ctx(t), http.MethodGet, api.BytesPath("x"), nil, nil)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return string(body)
	}
	if got := get(); got != "second" {
		t.Errorf("a new request got %q", got)
	}
	second.say(api.Summary{Full: true, Holdings: []api.Holding{{Namespace: "b", Volumes: 1}}})
	s.wait("the summary of the second connection", func() bool { return s.holds("b") })
	close(finish)
	body, err := io.ReadAll(slow.Body)
	if err != nil || string(body) != "first,done" {
		t.Errorf("the request on the first connection got %q, %v", body, err)
	}
	first.isEnded(t)
	if got := get(); got != "second" {
		t.Errorf("a later request got %q", got)
	}
	if c := s.Counts(); c.Connected != 1 || len(s.Missing()) != 0 {
		t.Errorf("counts %+v, missing %+v", c, s.Missing())
	}
	second.end()
	s.wait("the end", func() bool { return len(s.Missing()) == 1 })
}

// snapshot returns the node's connections.
func (n *node) snapshot() []*connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.connections)
}

// TestManyConnections: a node has two connections at most, and the newest are those that stay.
func TestManyConnections(t *testing.T) {
	s := newStage(t).listen(nil)
	token := s.cluster.add("p1", "u1", "n1")
	var players []*player
	for range 12 {
		players = append(players, s.connect("n1", token, nil))
		if n := s.find("n1"); n != nil && len(n.snapshot()) > mostConnections {
			t.Fatalf("the node has %d connections", len(n.snapshot()))
		}
	}
	for _, p := range players[:10] {
		p.isEnded(t)
	}
	players[11].say(api.Summary{Full: true, Holdings: []api.Holding{{Namespace: "a", Volumes: 1}}})
	players[10].isEnded(t)
	s.wait("the summary", func() bool { return s.holds("a") })
}

// TestFallBack: when the newest connection is lost before it was of any use, the older one is used
// again.
func TestFallBack(t *testing.T) {
	s := newStage(t).listen(nil)
	s.node("n1", nil, api.Holding{Namespace: "a", Volumes: 1})
	second := s.connect("n1", "token-uid-n1", nil)
	second.end()
	s.wait("its end", func() bool { return len(s.find("n1").snapshot()) == 1 })
	conn, ok := s.Get("n1")
	if !ok || !s.holds("a") {
		t.Fatal("the node is not connected")
	}
	if _, err := conn.Client().List(ctx(t), api.Query{}); err != nil {
		t.Error(err)
	}
}

// TestAgainOnTheNewer: a request that the older connection does not answer any more is sent again over
// the newer one.
func TestAgainOnTheNewer(t *testing.T) {
	s := newStage(t).listen(nil)
	var first *player
	arrived := make(chan struct{})
	first = s.node("n1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	conn, _ := s.Get("n1")
	result := make(chan error, 1)
	go func() {
		_, err := conn.Client().List(ctx(t), api.Query{})
		result <- err
	}()
	<-arrived
	second := s.connect("n1", "token-uid-n1", nil)
	first.end()
	if err := <-result; err != nil || second.asked.Load() != 1 {
		t.Errorf("%v after %d questions on the newer connection", err, second.asked.Load())
	}
}

// TestPodGone: the connections of a pod that was deleted are closed, and those of its successor not.
func TestPodGone(t *testing.T) {
	s := newStage(t).listen(nil)
	first := s.node("n1", nil)
	second := s.connect("n1", s.cluster.add("katbox-new", "uid-new", "n1"), nil)
	s.cluster.change(func() { delete(s.cluster.known, "uid-n1") })
	s.PodGone(Pod{Name: "katbox-n1", UID: "uid-n1", Node: "n1"})
	first.isEnded(t)
	if left := s.find("n1").snapshot(); len(left) != 1 || left[0].podUID != "uid-new" {
		t.Errorf("left are %+v", left)
	}
	s.cluster.change(func() { delete(s.cluster.known, "uid-new") })
	s.PodGone(Pod{Name: "katbox-new", UID: "uid-new", Node: "n1"})
	second.isEnded(t)
	s.wait("the node to be forgotten", func() bool { return s.find("n1") == nil })
	if len(s.Missing()) != 0 || s.Counts().Expected != 0 {
		t.Errorf("missing: %+v", s.Missing())
	}
	s.PodGone(Pod{Name: "x", UID: "y", Node: "z"})
}

// TestUnknownNodesStay: while it is not known which nodes there should be, a node that was lost is
// missing.
func TestUnknownNodesStay(t *testing.T) {
	s := newStage(t).listen(nil)
	p := s.node("n1", nil)
	s.cluster.change(func() { clear(s.cluster.known); s.cluster.unsynced = true })
	p.end()
	s.wait("the node to be missing", func() bool { return len(s.Missing()) == 1 })
	s.cluster.change(func() { s.cluster.unsynced = false })
	if len(s.Missing()) != 0 || s.find("n1") != nil {
		t.Error("the node is missing although it should not run a daemon")
	}
}

// join connects a node over a pipe, in a synctest bubble.
func (s *stage) join(name string, h http.Handler) *player {
	s.cluster.add("katbox-"+name, "uid-"+name, name)
	there, here := net.Pipe()
	p := serve(there, h)
	c, err := s.open(here, name, "uid-"+name, "v1")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.register(c); err != nil {
		s.t.Fatal(err)
	}
	c.start()
	return p
}

// TestSilence: a node that is silent for too long is cut off, and one that gives signs of life is not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		silent, mute, alive := s.join("n1", nil), s.join("n2", nil), s.join("n3", nil)
		defer silent.end()
		defer mute.end()
		defer alive.end()
		silent.say(api.Summary{Full: true})
		for range 10 {
			alive.say(api.Summary{Full: true})
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		var missing []string
		for _, m := range s.Missing() {
			missing = append(missing, m.Node)
		}
		if !slices.Equal(missing, []string{"n1", "n2"}) {
			t.Errorf("missing are %q", missing)
		}
		time.Sleep(46 * time.Second)
		synctest.Wait()
		if len(s.Missing()) != 3 {
			t.Error("the third is not missed")
		}
	})
}

// TestDrain: what runs on an older connection may go on for an hour.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		first := s.join("n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		defer first.end()
		first.say(api.Summary{Full: true})
		conn, _ := s.Get("n1")
		stream, err := conn.Client().Send(t.Context(), http.MethodGet, api.BytesPath("x"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		second := s.join("n1", nil)
		defer second.end()
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					second.say(api.Summary{Full: true})
					time.Sleep(15 * time.Second)
				}
			}
		}()
		time.Sleep(59 * time.Minute)
		select {
		case <-first.ended:
			t.Error("the older connection is closed too early")
		default:
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case <-first.ended:
		default:
			t.Error("the older connection is open")
		}
		if len(s.Missing()) != 0 {
			t.Error("the node is missing")
		}
		close(stop)
		time.Sleep(15 * time.Second)
	})
}

// TestSkip: a node that did not answer twice in a row is not asked for ten seconds.
func TestSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		defer s.Close()
		var answers atomic.Bool
		p := s.join("n1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !answers.Load() {
				<-r.Context().Done()
			}
			_, _ = io.WriteString(w, `{"items":[]}`)
		}))
		defer p.end()
		p.say(api.Summary{Full: true, Holdings: []api.Holding{{Namespace: "a", Volumes: 1}}})
		synctest.Wait()
		conn, _ := s.Get("n1")
		list := func() error {
			within, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := conn.Client().List(within, api.Query{})
			return err
		}
		skipped := func() bool { return s.With("a")[0].Skip == NotAnswering }
		given, giveUp := context.WithCancel(t.Context())
		giveUp()
		for range 5 {
			if _, err := conn.Client().List(given, api.Query{}); err == nil {
				t.Error("a request that was given up is answered")
			}
		}
		var atOnce sync.WaitGroup
		for range 5 {
			atOnce.Go(func() {
				if err := list(); err == nil {
					t.Error("a silent node has answered")
				}
			})
		}
		if atOnce.Wait(); skipped() {
			t.Error("failures at the same time count as several")
		}
		if err := list(); err == nil || !skipped() || s.ByHash(hash("n1"))[0].Reason != NotAnswering {
			t.Errorf("after two failures: %v, skipped %v", err, skipped())
		}
		if len(s.Missing()) != 0 {
			t.Error("a node that is connected is not missing")
		}
		time.Sleep(9 * time.Second)
		if !skipped() {
			t.Error("it is not skipped for ten seconds")
		}
		time.Sleep(2 * time.Second)
		if skipped() {
			t.Error("it is skipped for more than ten seconds")
		}
		if err := list(); err == nil || !skipped() {
			t.Errorf("after a third failure: %v, skipped %v", err, skipped())
		}
		answers.Store(true)
		if err := list(); err != nil || skipped() {
			t.Errorf("after an answer: %v, skipped %v", err, skipped())
		}
	})
}
