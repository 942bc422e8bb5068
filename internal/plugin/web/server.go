package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// idleLimit is how long the server runs without a request from its page.
	idleLimit = 30 * time.Minute
	// headerLimit is how long the headers of a request may take, bodyLimit how long its body, and
	// silentLimit how long a connection may be kept for the next request.
	headerLimit = 10 * time.Second
	bodyLimit   = 10 * time.Second
	silentLimit = 2 * time.Minute
	// stallLimit is how long the browser may take to read the next piece of an answer.
	stallLimit = 5 * time.Minute
	// maxHeader bounds the headers of a request, of which the longest part is the path of a file, and
	// maxBody its body, in bytes.
	maxHeader = 32 << 10
	maxBody   = 64 << 10
	// maxConnections bounds the connections to each listener. A browser opens six.
	maxConnections = 64
)

// ErrIdle is why a server ends that has had no request from its page for a long time.
var ErrIdle = errors.New("the page was not used for 30 minutes")

// Everywhere stands for all namespaces.
const Everywhere = "*"

// Target is what the page shows first.
type Target struct {
	// Namespace may be Everywhere for a search.
	Namespace string `json:"namespace"`
	// Name is a volume; empty if Search finds several.
	Name string `json:"name"`
	// Path is the ref of a file or directory in it; empty is its top.
	Path string `json:"path"`
	// Search is what the list of the namespace is searched for; empty is nothing.
	Search string `json:"search"`
}

// Config is what a server needs.
type Config struct {
	// Forward answers requests for retained volumes, as the user. A stream that breaks ends with a panic
	// of [http.ErrAbortHandler].
	Forward http.Handler
	// Namespace is the one that the page begins with; with AllNamespaces it lists all.
	Namespace     string
	AllNamespaces bool
	// Target is nil for the list of the namespace.
	Target *Target
	// User and Version are shown on the page. They may be empty.
	User, Version string
	// Flags are what the commands that the page shows need to reach the same cluster as the same user:
	// "--context=prod". They may be nil.
	Flags []string
	// Namespaces returns the names of namespaces for the user to choose among, and whether they are all that
	// there are; others can be typed. It may be nil.
	Namespaces func(context.Context) (names []string, all bool)
	// Port is that of the page, and the next one is for raw bytes. With 0, both are any free ones.
	Port int
	// Report is called with what a user should know about a failure inside of the server.
	Report func(problem string)

	// idle is idleLimit except in tests.
	idle time.Duration
}

// Server is the server of one page.
type Server struct {
	Config
	page, raw site
	backend   backend
	login     login
	tickets   tickets
	idle      *idleness
	assets    map[string]asset
	over      chan struct{}
}

// site is an origin: a port of the loopback interface.
type site struct {
	listener net.Listener
	port     string
}

// New opens the ports of a server. It answers once it runs.
func New(c Config) (*Server, error) {
	switch {
	case c.Forward == nil || c.Report == nil:
		return nil, errors.New("web: Forward or Report is missing")
	case c.Namespace == "" && !c.AllNamespaces:
		return nil, errors.New("web: Namespace is missing")
	case c.Port != 0 && (c.Port < 1024 || c.Port > 65534):
		return nil, fmt.Errorf("--port=%d is not possible; choose 0 or one from 1024 to 65534", c.Port)
	}
	if c.idle == 0 {
		c.idle = idleLimit
	}
	assets, err := pageAssets()
	if err != nil {
		return nil, err
	}
	s := &Server{Config: c, backend: backend{c.Forward, c.Report}, assets: assets, over: make(chan struct{})}
	next := 0
	if s.page, err = listen(c.Port); err != nil {
		return nil, err
	}
	if c.Port != 0 {
		next = c.Port + 1
	}
	if s.raw, err = listen(next); err != nil {
		s.page.listener.Close()
		return nil, err
	}
	s.login = newLogin(s.page.port)
	s.idle = newIdleness(c.idle, sync.OnceFunc(func() { close(s.over) }))
	return s, nil
}

// listen opens a port of the loopback interface.
func listen(port int) (site, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return site{}, fmt.Errorf("%w; choose another --port, which needs the next one too", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		listener.Close()
		return site{}, fmt.Errorf("the listener got %s instead of a loopback address", listener.Addr())
	}
	return site{netutil.LimitListener(listener, maxConnections), strconv.Itoa(address.Port)}, nil
}

// URL is the one that opens the page, once.
func (s *Server) URL() string { return "http://127.0.0.1:" + s.page.port + "/?token=" + s.login.token }

// Ports are that of the page, and that of raw bytes.
func (s *Server) Ports() (page, raw string) { return s.page.port, s.raw.port }

// Opened is closed when the first URL was used.
func (s *Server) Opened() <-chan struct{} { return s.login.used }

// Run serves until the context ends, and then returns nil at once. It returns [ErrIdle] if the page was
// not used for a long time.
func (s *Server) Run(ctx context.Context) error {
	defer s.idle.stop()
	failed := make(chan error, 2)
	for _, one := range []struct {
		site
		handler http.HandlerFunc
	}{{s.page, s.servePage}, {s.raw, s.serveRaw}} {
		server := &http.Server{
			Handler:           s.contained(one.handler),
			ReadHeaderTimeout: headerLimit,
			IdleTimeout:       silentLimit,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          log.New(io.Discard, "", 0),
			// Otherwise "OPTIONS *" is answered without a look at who asks.
			DisableGeneralOptionsHandler: true,
		}
		defer server.Close()
		go func() { failed <- server.Serve(one.listener) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.over:
		return ErrIdle
	case err := <-failed:
		return fmt.Errorf("the page ended: %w", err)
	}
}

// contained reports a panic in a handler. The connection is closed, and the server goes on.
func (s *Server) contained(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch why := recover(); why {
			case nil:
			case http.ErrAbortHandler:
				panic(why)
			default:
				s.Report(fmt.Sprintf("a request of the page failed inside of the program: %q", fmt.Sprint(why)))
				panic(http.ErrAbortHandler)
			}
		}()
		handler(w, r)
	})
}
