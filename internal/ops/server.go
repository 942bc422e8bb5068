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
)

const (
	// A client has this long for its few words, and for reading the answer. The
	// latter begins when the question was read, so it is longer than healthLimit: the
	// first answer of the node is waited for.
	readLimit  = 10 * time.Second
	writeLimit = 30 * time.Second
	idleLimit  = 2 * time.Minute
	// maxHeader is far above what a probe sends.
	maxHeader = 16 << 10
)

// Config is what a Server works with.
type Config struct {
	// Endpoint is the address to listen on, such as ":8080"; empty listens nowhere.
	Endpoint string
	// Metrics answers /metrics.
	Metrics http.Handler
	Log     logr.Logger
}

// CheckEndpoint says why nothing can listen on an endpoint.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return fmt.Errorf("%q is not an address with a port: %w", endpoint, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no number of a port", endpoint)
	}
	return nil
}

// Server answers how the daemon is. It begins as one that is starting.
type Server struct {
	cfg Config
	// http serves on listener; nil when it listens nowhere.
	http     *http.Server
	listener *crowd
	failed   chan error

	health health

	mu sync.Mutex
	// endAsking ends the questions for the node's health; nil as long as there is
	// no node.
	endAsking context.CancelFunc
	// registered asks whether the kubelet knows the driver; nil as long as the CSI
	// socket is not open.
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
	s.listener = newCrowd(l, maxSilent, maxAsking)
	s.http = &http.Server{
		Handler: s.handler(), ConnState: s.listener.changed,
		ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(cfg.Log.WithName("http")), slog.LevelInfo),
	}
	cfg.Log.Info("answering how the daemon is", "address", l.Addr().String())
	go func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve HTTP on %s: %w", cfg.Endpoint, err)
		}
	}()
	return s, nil
}

// Failed delivers the reason when serving fails.
func (s *Server) Failed() <-chan error { return s.failed }

// Recovered says that the node is there, and how to ask it for its health: that is
// done until Stopping, unless the server listens nowhere.
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

// Serving says that the CSI socket is open. From now on the daemon is ready
// whenever registered returns nil; else that says why the kubelet has not
// registered the driver.
func (s *Server) Serving(registered func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = registered
}

// Stopping says that the daemon is about to stop: it is not ready from now on, and the
// node is not asked any more.
func (s *Server) Stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if s.endAsking != nil {
		s.endAsking()
	}
}

// Stop closes the listener and waits for the answers that are being given. Those
// that have not ended when ctx does are broken off.
func (s *Server) Stop(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop serving HTTP: %w", err), s.http.Close())
	}
	return nil
}
