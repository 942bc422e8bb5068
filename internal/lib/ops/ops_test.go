package ops

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// newServer is a server that listens nowhere and is asked directly.
func newServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the metrics") })
	s, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stopping) // ends the questions for the health
	return s
}

func (s *Server) ask(ctx context.Context, method, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	s.handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, method, path, nil))
	return answer
}

// want checks the status code and a part of the answer, which has one line.
func (s *Server) want(t *testing.T, path string, code int, part string) {
	t.Helper()
	answer := s.ask(t.Context(), http.MethodGet, path)
	body := answer.Body.String()
	if answer.Code != code || !strings.Contains(body, part) || strings.Count(body, "\n") != 1 {
		t.Errorf("%s: %d %q, want %d and a line with %q", path, answer.Code, body, code, part)
	}
}

func well(context.Context) error { return nil }

func registered() error { return nil }

func TestLifeOfADaemon(t *testing.T) {
	s := newServer(t, Config{})
	s.want(t, "/healthz", 503, "starting")
	s.want(t, "/readyz", 503, "starting")
	s.watch(well)
	s.want(t, "/healthz", 200, "ok")
	s.want(t, "/readyz", 503, "socket")
	s.Serving(registered)
	s.want(t, "/healthz", 200, "ok")
	s.want(t, "/readyz", 200, "ok")
	s.Stopping()
	s.want(t, "/readyz", 503, "stopping")
	s.want(t, "/healthz", 503, "stopping")
}

func TestReadyWaitsForTheKubelet(t *testing.T) {
	unregistered := errors.New("the kubelet has not asked yet")
	s := newServer(t, Config{})
	s.want(t, "/readyz", 503, "starting")
	s.watch(well)
	s.Serving(func() error { return unregistered })
	s.want(t, "/readyz", 503, "has not asked")
	s.want(t, "/healthz", 200, "ok")
	unregistered = nil
	s.want(t, "/readyz", 200, "ok")
}

func TestUnwellSaysWhyInOneLine(t *testing.T) {
	s := newServer(t, Config{})
	s.watch(func(context.Context) error { return errors.Join(errors.New("broken disk"), errors.New("broken actor")) })
	s.Serving(registered)
	s.want(t, "/healthz", 503, "broken disk; broken actor")
	s.want(t, "/readyz", 200, "ok")
}

func TestOtherPathsAndMethods(t *testing.T) {
	s := newServer(t, Config{})
	for _, tt := range []struct {
		method, path string
		code         int
		part         string
	}{
		{"GET", "/metrics", 200, "the metrics"},
		{"GET", "/", 200, "/healthz"},
		{"HEAD", "/healthz", 503, ""},
		{"GET", "/healthz/", 404, ""},
		{"GET", "/debug/pprof/", 404, ""},
		{"POST", "/healthz", 405, ""},
		{"POST", "/metrics", 405, ""},
		{"POST", "/", 405, ""},
		{"PUT", "/readyz", 405, ""},
		{"DELETE", "/metrics", 405, ""},
		{"DELETE", "/volumes", 404, ""},
	} {
		if answer := s.ask(t.Context(), tt.method, tt.path); answer.Code != tt.code || !strings.Contains(answer.Body.String(), tt.part) {
			t.Errorf("%s %s: %d %q, want %d and %q", tt.method, tt.path, answer.Code, answer.Body, tt.code, tt.part)
		}
	}
}

func TestListens(t *testing.T) {
	s := newServer(t, Config{Endpoint: "127.0.0.1:0", Log: logr.Discard()})
	address := s.listener.Addr().String()
	answer, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 503 {
		t.Errorf("%s, want 503", answer.Status)
	}
	if _, err := Start(Config{Endpoint: address, Metrics: s.cfg.Metrics}); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("a second one on %s: %v", address, err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-s.Failed():
		t.Errorf("failed by being stopped: %v", err)
	default:
	}
	if answer, err := http.Get("http://" + address + "/healthz"); err == nil {
		answer.Body.Close()
		t.Error("it still listens")
	}
	if err := newServer(t, Config{}).Stop(t.Context()); err != nil {
		t.Errorf("one that listens nowhere: %v", err)
	}
}

// TestLimitsFitTogether: a silent client is disconnected, one that waits for an answer gets
// it.
func TestLimitsFitTogether(t *testing.T) {
	s := newServer(t, Config{Endpoint: "127.0.0.1:0", Log: logr.Discard()})
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if s.http.ReadTimeout <= 0 || s.http.IdleTimeout <= 0 {
		t.Errorf("reading may take %s, idling %s; want a limit", s.http.ReadTimeout, s.http.IdleTimeout)
	}
	if s.http.WriteTimeout <= healthLimit {
		t.Errorf("an answer may take %s, and a question for the health %s", s.http.WriteTimeout, healthLimit)
	}
}

func TestCheckEndpoint(t *testing.T) {
	for endpoint, good := range map[string]bool{
		"": true, ":8080": true, "127.0.0.1:0": true, "[::1]:9090": true, "node-1:80": true,
		"8080": false, ":": false, ":http": false, ":65536": false, ":-1": false, "a:b:1": false, "http://node:80": false,
	} {
		if err := CheckEndpoint(endpoint); (err == nil) != good {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
