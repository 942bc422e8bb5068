package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// A client has this long to send its request and to read the answer. The latter time includes
	// the wait for the node's first answer, so it is longer than healthLimit.
	readLimit  = 10 * time.Second
	writeLimit = 30 * time.Second
	idleLimit  = 2 * time.Minute
	// maxHeader is far more than a probe sends.
	maxHeader = 16 << 10
)

// Config is what a Server works with.
type Config struct {
	Endpoint string       // address to listen on, such as ":8080"; empty listens nowhere
	Metrics  http.Handler // answers /metrics
	Log      logr.Logger
}

// CheckEndpoint returns why nothing can listen on an endpoint.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return fmt.Errorf("%q is not an address with a port: %w", endpoint, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port number", endpoint)
	}
	return nil
}

// Server reports the daemon's state. It begins with "starting".
type Server struct {
	cfg Config
	// http serves on listener; nil when it listens nowhere.
	http     *http.Server
	listener *BoundedListener
	failed   chan error
	health   health

	mu sync.Mutex
	// endAsking ends the questions for the node's health; nil before Recovered.
	endAsking context.CancelFunc
	// registered returns why the kubelet cannot use the driver; nil before Serving.
	registered func() error
	stopping   bool
}

// Start returns a server that listens.
func Start(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, failed: make(chan error, 1), health: health{log: cfg.Log, known: make(chan struct{})}}
	if cfg.Endpoint == "" {
		return s, nil
	}
	l, err := net.Listen("tcp", cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	s.listener = NewBoundedListener(l, maxSilent, maxAsking)
	s.http = &http.Server{
		Handler: s.handler(), ConnState: Changed,
		ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(cfg.Log.WithName("http")), slog.LevelInfo),
	}
	cfg.Log.Info("serving health and metrics", "address", l.Addr().String())
	go func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve HTTP on %s: %w", cfg.Endpoint, err)
		}
	}()
	return s, nil
}

// Failed delivers the reason when serving fails.
func (s *Server) Failed() <-chan error { return s.failed }

// Recovered reports that the node has recovered. From now until Stopping a server that listens asks
// it for its health.
func (s *Server) Recovered(healthy func(context.Context) error) {
	if s.http != nil {
		s.watch(healthy)
	}
}

func (s *Server) watch(healthy func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.endAsking = cancel
	s.mu.Unlock()
	go s.health.watch(ctx, healthy)
}

// Serving reports that the CSI socket is open. The daemon is ready whenever registered returns nil.
func (s *Server) Serving(registered func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = registered
}

// Stopping reports that the daemon is about to stop. The server asks the node no more.
func (s *Server) Stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if s.endAsking != nil {
		s.endAsking()
	}
}

// Stop closes the listener and waits for running answers. It breaks them off when ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving HTTP: %w", err), s.http.Close())
	}
	return nil
}

var (
	errStarting = errors.New("starting: the volumes of earlier runs are being recovered")
	errStopping = errors.New("stopping")
	errNoSocket = errors.New("starting: the CSI socket is not open yet")
)

// index is the page at /.
const index = `Katbox
/healthz  200 when the daemon works, else 503 and why not
/readyz   200 when it can be used, else 503 and why not
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
