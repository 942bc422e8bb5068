package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/api"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/metrics"
)

const (
	// mostStreams, mostDirectories and mostLists are how many may run at once on a node. Streams and directories
	// are shared out by the namespaces of the volumes; lists are of volumes, or of one entry, and read no names.
	// Who wants a directory waits; of a namespace no more than mostWaiting do. A page of a directory with hostile
	// names may take 12 MB until it is sent.
	mostStreams     = 32
	mostDirectories = 8
	mostWaiting     = 8
	mostLists       = 16
	// listLimit bounds the time of a list, measureLimit that of a measurement of all live volumes.
	listLimit    = 5 * time.Second
	measureLimit = 30 * time.Second
	// answerLimit is how long an answer may take that is not a stream, sendLimit how long a client may
	// take to read it. It keeps its slot until then.
	answerLimit = 30 * time.Second
	sendLimit   = 10 * time.Second
	// stallLimit is how long a client may take to read the next 64 KiB of a stream: of the only one of a namespace, and
	// half of it for the second one, and so on.
	stallLimit = 5 * time.Minute
)

// Volumes are the volumes of a node. An error wraps [volume.ErrNotFound] for a volume that is not
// known, [volume.ErrNotRetained] for one that is in use, and [volume.ErrGone] for one that has just
// been deleted.
type Volumes interface {
	// List returns a page of the retained volumes, the newest first.
	List(context.Context, volume.Selection) (volume.Page, error)
	// Describe describes a volume in whatever phase it is.
	Describe(context.Context, volume.ID) (volume.Description, error)
	// Awake describes the volumes that are published or changing.
	Awake(context.Context) ([]volume.Description, error)
	// Read begins to read a retained volume. The caller closes the reading.
	Read(context.Context, volume.ID) (*files.Reading, error)
	// Pin keeps a retained volume until then, Unpin takes a pin or a release back, and Release lets it go
	// after the daemon's grace. Each returns the volume as it is then, once that is recorded. by is who
	// decided, why the reason that was given.
	Pin(ctx context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error)
	Unpin(ctx context.Context, id volume.ID, by string) (volume.Description, error)
	Release(ctx context.Context, id volume.ID, by, why string) (volume.Description, error)
	// Purge ends the lifespan of a retained volume; it returns once that is recorded.
	Purge(ctx context.Context, id volume.ID, by, why string) error
	// Gone returns a page of the volumes that were deleted, the last one first.
	Gone(context.Context, volume.GoneSelection) (volume.GonePage, error)
	// Usage returns what a volume takes that is published. If it has to look at the files, it calls pace
	// before each batch of them.
	Usage(ctx context.Context, r volume.Record, pace func(context.Context) error) (volume.Size, error)
}

// Config is what the handler works with.
type Config struct {
	Volumes Volumes
	// Node is the node's name in the cluster.
	Node string
	// Space measures the working directory's file system.
	Space func() (volume.Space, error)
	// LowPriority lowers the I/O priority of the calling goroutine until end is called.
	LowPriority func() (end func())
	// Gateway: requests come from a gateway. The log says on whose behalf.
	Gateway bool
	// ReadRate bounds how many bytes of a stream are sent in a second; 0 sets no bound.
	ReadRate int64
	// Pace makes the measurement of live volumes give way to calls; nil makes no pauses.
	Pace files.Pace
	// Report writes a text about the daemon.
	Report  func(context.Context, io.Writer) error
	Log     logr.Logger
	Metrics *metrics.Metrics
}

// check names the first field that is missing.
func (c Config) check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Volumes", c.Volumes != nil}, {"Space", c.Space != nil}, {"LowPriority", c.LowPriority != nil},
		{"Report", c.Report != nil}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("node: Config.%s is missing", field.name)
		}
	}
	return nil
}

// handler answers the requests of people.
type handler struct {
	Config
	streams, directories *shares.Shares
	searches             *shares.Shares
	lists, measurements  slots
	// stall is stallLimit, and list is listLimit; tests have others.
	stall, list time.Duration
	batches     sync.Pool
}

// NewHandler returns the handler of all routes below /v1.
func NewHandler(cfg Config) (http.Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return newHandler(cfg), nil
}

func newHandler(cfg Config) *handler {
	return &handler{
		Config: cfg, streams: shares.New(mostStreams, mostStreams, 0), directories: shares.New(mostDirectories, mostDirectories, mostWaiting),
		searches: shares.New(mostSearches, mostSearches, mostWaiting),
		lists:    make(slots, mostLists), measurements: make(slots, 1), stall: stallLimit, list: listLimit,
		batches: sync.Pool{New: func() any { return new([batch]byte) }},
	}
}

// ServeHTTP answers a request. A stream that fails after its first byte is cut by a panic with
// [http.ErrAbortHandler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{Answer: api.NewAnswer(w, r, sendLimit), r: r, h: h}
	a.Allow(answerLimit)
	header := w.Header()
	header.Set(api.HeaderLevel, api.LevelGrep)
	if h.Node != "" {
		header.Set(api.HeaderNode, h.Node)
	}
	a.end(h.route(a))
}

// route finds what a request asks for. It neither cleans paths nor redirects, since no answer of an
// API of Kubernetes may redirect.
func (h *handler) route(a *answer) error {
	if a.r.ContentLength != 0 && a.r.Method != http.MethodPatch {
		// What is left of a body would be read before the next request.
		if a.r.ProtoMajor == 1 { // in HTTP/2 others use the connection, and a body is bounded
			a.Header().Set("Connection", "close")
			_ = a.Control.SetReadDeadline(time.Now())
		}
		return bad(api.BadParameter, "", "the request has a body, and none is expected")
	}
	if _, err := url.ParseQuery(a.r.URL.RawQuery); err != nil {
		// What is wrong would be left out of the query.
		return bad(api.BadParameter, "", "the query %q is malformed: %v", a.r.URL.RawQuery, err)
	}
	path, ok := strings.CutPrefix(a.r.URL.Path, "/v1/")
	if !ok {
		return notThere(a.r)
	}
	switch elements := strings.Split(path, "/"); {
	case path == "volumes":
		return a.by(methods{http.MethodGet: {"list", a.listVolumes}})
	case path == "grep":
		return a.by(methods{http.MethodGet: {"grep", a.grep}})
	case path == "gone":
		return a.by(methods{http.MethodGet: {"gone", a.listGone}})
	case path == "usage":
		return a.by(methods{http.MethodGet: {"usage", a.plain(a.usage)}})
	case path == "report":
		return a.by(methods{http.MethodGet: {"report", a.plain(a.report)}})
	case len(elements) < 2 || elements[0] != "volumes":
		return notThere(a.r)
	default:
		id, err := volume.ParseID("volume ID", elements[1])
		if err != nil {
			return bad(api.BadParameter, "id", "%q is not a volume ID: %v", elements[1], err)
		}
		a.record.ID = id
		switch strings.Join(elements[2:], "/") {
		case "":
			return a.by(methods{
				http.MethodGet: {"describe", a.plain(a.describe)}, http.MethodPatch: {"pin", a.plain(a.keep)},
				http.MethodDelete: {"purge", a.remove},
			})
		case "files":
			return a.by(methods{http.MethodGet: {"files", a.files}})
		case "bytes":
			return a.by(methods{http.MethodGet: {"bytes", a.bytes}, http.MethodHead: {"bytes", a.bytes}})
		}
		return notThere(a.r)
	}
}

func notThere(r *http.Request) *api.Error {
	return api.NewError(api.NotFound,
		"there is nothing at %q; the routes are those of /v1/volumes, /v1/grep, /v1/gone, /v1/usage and /v1/report", r.URL.Path)
}

// slots bound how many requests do something at once.
type slots chan struct{}

// take takes a slot, if one is free. The slot is held until release is called.
func (s slots) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}

// within runs a list within its time and among the others.
func (h *handler) within(ctx context.Context, list func(context.Context) error) error {
	release, ok := h.lists.take()
	if !ok {
		return tooMany("%d lists are being made on this node, which is the most; try again in a moment", mostLists)
	}
	defer release()
	return h.inTime(ctx, list)
}

// inTime runs a list within its time.
func (h *handler) inTime(ctx context.Context, list func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, h.list)
	defer cancel()
	err := list(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return api.NewError(api.Timeout, "the list was not made within %s; ask for less: with a limit, or for a directory further down", h.list)
	}
	return err
}

// whose returns the namespace that a request for a volume counts for, and how people call it.
func (a *answer) whose(ctx context.Context) (of, who string, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.h.list)
	defer cancel()
	d, err := a.h.Volumes.Describe(ctx, a.record.ID)
	if err != nil {
		return "", "", err
	}
	a.record = d.Record
	if of = d.Record.Namespace; of == "" {
		return "", "volumes without a namespace", nil
	}
	return of, fmt.Sprintf("volumes of namespace %q", of), nil
}

func tooMany(format string, values ...any) *api.Error {
	e := api.NewError(api.TooManyRequests, format, values...)
	e.RetryAfter = time.Second
	return e
}
