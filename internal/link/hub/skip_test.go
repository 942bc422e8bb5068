package hub

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// skipStage is a node that answers as the test wants, and holds volumes of namespace a.
func skipStage(t *testing.T, h http.HandlerFunc) (s *stage, client *api.Client, skipped func() bool) {
	s = newStage(t)
	p := s.join("n1", h)
	t.Cleanup(func() {
		p.end()
		s.Close()
		synctest.Wait()
	})
	p.say(api.Summary{Full: true, Holdings: []api.Holding{{Namespace: "a", Volumes: 1}}})
	synctest.Wait()
	conn, ok := s.Get("n1")
	if !ok {
		t.Fatal("the node is not connected")
	}
	return s, conn.Client(), func() bool { return s.With("a")[0].Skip == NotAnswering }
}

// TestSkipAfterHeaders: a header without the rest of the answer is no answer.
func TestSkipAfterHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, skipped := skipStage(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"items":[`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		for i := range 2 {
			within, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			if _, err := client.List(within, api.Query{}); err == nil {
				t.Error("half an answer is an answer")
			}
			cancel()
			if skipped() != (i == 1) {
				t.Errorf("after %d failures: skipped %v", i+1, skipped())
			}
		}
	})
}

// TestSlowVolumesDoNotSkip: who reads a large directory slowly does not take the node away from the
// lists of others.
func TestSlowVolumesDoNotSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, skipped := skipStage(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for range 5 {
			within, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			if _, err := client.Files(within, "v", api.FilesQuery{}); err == nil {
				t.Error("there is an answer")
			}
			cancel()
		}
		if skipped() {
			t.Error("the node is skipped")
		}
	})
}

// TestLongRequestsDoNotSkip: a request that no node takes fails, and says nothing about the nodes.
func TestLongRequestsDoNotSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, skipped := skipStage(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[]}`) })
		for range 5 {
			if _, err := client.List(t.Context(), api.Query{Pod: strings.Repeat("x", 2<<20)}); err == nil {
				t.Error("there is an answer")
			}
		}
		if skipped() {
			t.Error("the node is skipped")
		}
		if _, err := client.List(t.Context(), api.Query{}); err != nil {
			t.Errorf("a short request: %v", err)
		}
	})
}
