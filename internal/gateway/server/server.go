package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/gateway/trust"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/resource"
)

const (
	// maxLists, maxFiles, maxStreams and maxSearches are how many requests run at once, maxForReader how many of
	// each kind one reader may have, and maxSearchesForReader how many searches.
	maxLists             = 16
	maxFiles             = 64
	maxStreams           = 256
	maxSearches          = 8
	maxForReader         = 8
	maxSearchesForReader = 2
	// waitLimit is how long a list or a request for files waits for its turn: as long as those that run may take to
	// be read. mostWaiting is how many of each kind of one reader wait.
	waitLimit   = answerLimit
	mostWaiting = 8
	// nodeLimit is how long a node may take to answer a request that is not a list or a stream.
	nodeLimit = 5 * time.Second
	// removeLimit is how long a node may take to record that a volume is gone, and beginLimit until a
	// stream begins.
	removeLimit = 30 * time.Second
	// archiveLimit is how long more it takes to find a volume where there is an archive, and to read there what is no stream.
	archiveLimit = 15 * time.Second
	beginLimit   = 30 * time.Second
	// answerLimit is how long the API server may take to read an answer that is not a stream.
	answerLimit = 30 * time.Second
	// handleLimit is how long a request may take until its answer begins, with time to spare for the
	// question whether the user may. HTTP/2 resets a stream at its deadline for writing, also where
	// nothing is being written: an error would not get out.
	handleLimit = 30*time.Second + waitLimit + removeLimit + beginLimit
	// stallLimit is how long the next 64 KiB of a stream may take.
	stallLimit = 5 * time.Minute

	// headerLimit is how long a request may take to arrive, idleLimit how long a connection may be
	// silent, and maxHeader bounds the headers of a request: names of groups, and a path.
	headerLimit = 10 * time.Second
	idleLimit   = 2 * time.Minute
	maxHeader   = 256 << 10
)

// Authenticator says who asks. [trust.Authenticator] is one.
type Authenticator interface {
	// Authenticate returns a [*trust.UnauthenticatedError], or an error that wraps
	// [trust.ErrUnavailable].
	Authenticate(*http.Request) (user.Info, error)
}

// Authorizer says who may do what. [trust.Authorizer] is one.
type Authorizer interface {
	// Allowed returns an error if there is no answer.
	Allowed(ctx context.Context, who user.Info, what trust.Attributes) (allowed bool, reason string, err error)
}

// Fleet lists and finds volumes on all nodes. [fleet.Fleet] is one.
type Fleet interface {
	List(context.Context, fleet.Request) (fleet.Page, error)
	Gone(context.Context, fleet.Request) (fleet.Page, error)
	Find(context.Context, fleet.Lookup) (fleet.Found, error)
	Search(context.Context, fleet.SearchRequest) (*fleet.Search, error)
}

// Archive has copies of volumes, which outlive their nodes.
type Archive interface {
	// Client returns a client that reads a volume which is archived as if a node answered, and deletes it.
	Client(v api.Volume) *api.Client
	// Forget deletes the copy of a volume that a node has, if there is one. Its error wraps [fleet.ErrArchive] if nothing is known, and
	// nothing was deleted.
	Forget(ctx context.Context, v api.Volume) error
}

// Config is what a Server works with.
type Config struct {
	Authenticator Authenticator
	Authorizer    Authorizer
	Fleet         Fleet
	// Client returns the client of a node; false if the node is not connected.
	Client func(node string) (*api.Client, bool)
	// Archive may be nil.
	Archive Archive
	// Namespace is the gateway's own, in which volumes are whose namespace is not known.
	Namespace string
	// Ready returns why the gateway cannot answer requests at present; nil if it can.
	Ready func() error
	Log   logr.Logger
	// Version is that of the gateway, which its users may know; it may be empty.
	Version string
	// Metrics may be nil.
	Metrics *gatewaymetrics.Metrics
}

// check names the first field that is missing.
func (c Config) check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Authenticator", c.Authenticator != nil}, {"Authorizer", c.Authorizer != nil}, {"Fleet", c.Fleet != nil},
		{"Client", c.Client != nil}, {"Namespace", c.Namespace != ""}, {"Ready", c.Ready != nil},
	} {
		if !field.ok {
			return fmt.Errorf("server: Config.%s is missing", field.name)
		}
	}
	return nil
}

// Server answers requests. Its methods may be called from several goroutines.
type Server struct {
	Config
	documents                       map[string][]byte
	lists, files, streams, searches *limiter
	// stopping ends, with errStopping as its cause, when Stop is called.
	stopping context.Context
	stop     context.CancelCauseFunc
	// stall is stallLimit, node nodeLimit and begin beginLimit; tests shorten them.
	stall, node, begin time.Duration
}

// errStopping: the gateway stops.
var errStopping = errors.New("the gateway stops")

// New returns a Server.
func New(c Config) (*Server, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, documents: resource.Documents(),
		lists: newLimiter("lists", maxLists, maxForReader), files: newLimiter("requests for files", maxFiles, maxForReader),
		streams: newLimiter("streams", maxStreams, maxForReader), searches: newLimiter("searches", maxSearches, maxSearchesForReader),
		stall: stallLimit, node: nodeLimit, begin: beginLimit,
	}
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// reading is how long a request for files may take.
func (s *Server) reading() time.Duration {
	if s.Archive == nil {
		return s.node
	}
	return s.node + archiveLimit
}

// Stop breaks the streams that run and refuses new ones. What else runs ends by itself. The log says
// of each stream where to go on; [http.Server.Shutdown] then returns soon.
func (s *Server) Stop() { s.stop(errStopping) }

// HTTP returns an HTTP server for the handler, with limits for clients that do not finish what they
// begin. The caller sets its TLSConfig, and its listener is one of [Bounded]. Handlers set their own limits for the time of an answer.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHeader, ConnState: ops.Changed,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(s.Log.WithName("http")), slog.LevelInfo),
	}
}

// maxSilent and maxAsking bound connections: the API servers of a cluster have a few each, and one for each request where
// they do without HTTP/2. Any pod may connect, and is asked for a certificate with its first request only.
const (
	maxSilent = 512
	maxAsking = 1024
)

// Bounded bounds the connections of a server. Each address has a share: one that makes many loses its own, and no other one's.
func Bounded(l net.Listener) net.Listener { return ops.NewBoundedListener(l, maxSilent, maxAsking) }

// ServeHTTP answers a request. A stream that fails after its first byte is reset by a panic with
// [http.ErrAbortHandler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Answer: api.NewAnswer(w, r, answerLimit), r: r, s: s, audit: auditID(r.Header.Get("Audit-Id")), what: route(r)}
	c.Allow(handleLimit)
	c.end(c.answer())
}
