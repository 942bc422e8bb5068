package replicas

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
)

// many is a replica of many nodes, each of which holds volumes of the namespace.
type many struct {
	Local
	held []hub.Held
}

func (many) ID() string                                         { return "other" }
func (m many) Each(string) []hub.Held                           { return m.held }
func (many) Here(string, *http.Request) (*http.Response, error) { return nil, nil }

type namedConn struct {
	hub.Conn
	name string
}

func (n namedConn) Node() string { return n.name }

// BenchmarkLook is what a list costs that asks another replica which of its 10,000 nodes hold what: its answer, and reading that.
func BenchmarkLook(b *testing.B) {
	local := many{}
	for i := range 10_000 {
		local.held = append(local.held, hub.Held{Conn: namedConn{name: fmt.Sprintf("node-%05d.cluster.example", i)}, Holdings: []api.Holding{{
			Namespace: "ci", NamespaceUID: "0c8e1f9a-0000-4000-8000-000000000000", Verdict: "confirmed", Volumes: 2,
			Newest: time.Unix(1_700_000_000, int64(i)),
		}}})
	}
	r := &Replicas{cfg: Config{Local: local}}
	request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, nodesPath+"?namespace=ci", nil)
	for b.Loop() {
		w := httptest.NewRecorder()
		r.nodes(w, request)
		_, nodes, err := readNodes(w.Body)
		if err != nil || len(nodes) != len(local.held) {
			b.Fatal(len(nodes), err)
		}
	}
}
