package uplink

import (
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// reading is a good gateway that begins to read on its first connection, before that grows old.
func reading(t *testing.T, ca *uplinktest.Authority) (behave func(net.Conn), nodes chan *node, answers chan *http.Response) {
	answers = make(chan *http.Response, 1)
	var once sync.Once
	behave, nodes = goodAfter(t, ca.Leaf(t, gatewayName), func(n *node) {
		once.Do(func() {
			answer, err := n.Ask(http.MethodGet, "/v1/volumes", nil)
			if err != nil {
				t.Error(err)
				return
			}
			answers <- answer
		})
	})
	return behave, nodes, answers
}

// TestReaderOutlastsALostConnection: while something runs on an old connection and the one after it is
// lost, that is replaced, and there is still no third: the gateway would close the oldest.
func TestReaderOutlastsALostConnection(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes, answers := reading(t, ca)
	conns := make(chan net.Conn, 100)
	g := startGateway(t, "127.0.0.1:0", func(conn net.Conn) {
		conns <- conn
		behave(conn)
	})
	s := newScene(t, ca)
	s.pace.life = 50 * time.Millisecond
	letGo := make(chan struct{})
	s.cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-letGo
		_, _ = io.WriteString(w, "whole")
	})
	s.start(g.port())
	next(t, "node", nodes)
	answer := next(t, "answer", answers)
	defer answer.Body.Close()
	next(t, "renewed connection", nodes)
	<-conns
	must(t, next(t, "renewed connection", conns).Close())
	next(t, "connection in its place", nodes)
	// Nothing says that no fourth comes: it would by now.
	for end := time.Now().Add(10 * s.pace.life); time.Now().Before(end) && g.accepted() <= 3; {
		time.Sleep(s.pace.life)
	}
	if g.accepted() != 3 {
		t.Errorf("%d connections, want no fourth while something runs on the first", g.accepted())
	}
	close(letGo)
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
}
