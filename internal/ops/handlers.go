package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/katbox/katbox/internal/volume"
)

var (
	errStarting = errors.New("starting: the volumes of earlier runs are being recovered")
	errStopping = errors.New("stopping")
	errNoSocket = errors.New("starting: the CSI socket is not open yet")
)

// index is the page at /.
const index = `Katbox
/healthz  200 when the daemon works, else 503 and why not
/readyz   200 when the kubelet can use it, else 503 and why not
/metrics  for Prometheus
`

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthLimit)
		defer cancel()
		answer(w, s.healthy(ctx))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.ready()) })
	mux.Handle("GET /metrics", s.cfg.Metrics)
	return mux
}

// answer writes "ok", or an error in one line.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, volume.OneLine(err))
		return
	}
	fmt.Fprintln(w, "ok")
}

// healthy returns nil when the daemon works, else why not.
func (s *Server) healthy(ctx context.Context) error {
	s.mu.Lock()
	recovered, stopping := s.endAsking != nil, s.stopping
	s.mu.Unlock()
	switch {
	case stopping:
		return errStopping
	case !recovered:
		return errStarting
	}
	return s.health.answer(ctx)
}

// ready returns nil when the kubelet can use the daemon, else why not.
func (s *Server) ready() error {
	s.mu.Lock()
	recovered, registered, stopping := s.endAsking != nil, s.registered, s.stopping
	s.mu.Unlock()
	switch {
	case stopping:
		return errStopping
	case !recovered:
		return errStarting
	case registered == nil:
		return errNoSocket
	}
	return registered()
}
