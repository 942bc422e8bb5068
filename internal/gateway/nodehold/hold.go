package nodehold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/link/hub"
)

// Resource is what is held.
var Resource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// Nodes reads and changes the Nodes of the cluster; a client of metadata does.
type Nodes interface {
	Get(ctx context.Context, name string, o meta.GetOptions, subresources ...string) (*meta.PartialObjectMetadata, error)
	List(ctx context.Context, o meta.ListOptions) (*meta.PartialObjectMetadataList, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o meta.PatchOptions, subresources ...string) (
		*meta.PartialObjectMetadata, error)
}

// Config is what a Holder needs.
type Config struct {
	Nodes Nodes
	// Waiting says what waits on the nodes that this replica hears.
	Waiting func() []hub.Waiting
	// Elsewhere reports whether another replica hears a node: that one decides about it. It may be nil.
	Elsewhere func(node string) bool
	// Metrics may be nil.
	Metrics *gatewaymetrics.Metrics
	// Log may be the zero Logger.
	Log logr.Logger
}

const (
	// lookEvery is the time between two looks at what waits, listEvery that between two at all Nodes: holds that another
	// gateway began, and marks that are two hours old.
	lookEvery = 2 * time.Second
	listEvery = 10 * time.Minute
	// callsPerSecond and callsBurst bound the requests. They are few: two when a hold begins, two when it ends.
	callsPerSecond = 20
	callsBurst     = 50
)

var failureWaits = retry.Backoff{First: 2 * time.Second, Longest: time.Minute, Jitter: 0.5}

// Holder holds nodes.
type Holder struct {
	Config
	calls *rate.Limiter
	ended sync.WaitGroup

	// What follows is of the goroutine that looks alone. marks are those of the Nodes as they were read last.
	marks  map[string]mark
	listed time.Time
	// refused is what the log said last of requests that failed.
	refused string
}

// New returns a Holder that holds nothing until Start.
func New(c Config) (*Holder, error) {
	if c.Nodes == nil || c.Waiting == nil {
		return nil, errors.New("nodehold: Config.Nodes and Config.Waiting are required")
	}
	return &Holder{Config: c, calls: rate.NewLimiter(callsPerSecond, callsBurst), marks: map[string]mark{}}, nil
}

// Start begins to look, until ctx ends. Holds stay as they are then: another replica ends them, or the next gateway.
func (h *Holder) Start(ctx context.Context) { h.ended.Go(func() { h.run(ctx) }) }

// Wait returns when all has ended that Start has begun.
func (h *Holder) Wait() { h.ended.Wait() }

func (h *Holder) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := lookEvery
		if err := h.look(ctx); err != nil && ctx.Err() == nil {
			failures++
			wait = failureWaits.After(failures)
			h.failed(err)
		} else {
			failures, h.refused = 0, ""
		}
		_ = retry.Pause(ctx, wait)
	}
}

// failed says in the log why nodes are not held, once for each cause.
func (h *Holder) failed(err error) {
	h.Metrics.NodeHold(gatewaymetrics.Failed)
	if why := err.Error(); why != h.refused {
		h.refused = why
		h.Log.Info("cannot hold or release nodes on which volumes wait to be archived; retrying", logkeys.Cause, why)
	}
}

// look compares what waits with what is noted, and writes what differs. What fails for one node keeps no other one from it.
func (h *Holder) look(ctx context.Context) error {
	if h.listed.IsZero() || time.Since(h.listed) >= listEvery {
		if err := h.list(ctx); err != nil {
			return err
		}
		h.listed = time.Now()
	}
	heard := map[string]want{}
	for _, w := range h.Waiting() {
		heard[w.Node] = want{heard: true, volumes: w.Volumes, newest: w.Newest}
		if _, noted := h.marks[w.Node]; !noted && w.Volumes > 0 {
			h.marks[w.Node] = mark{}
		}
	}
	var failed failures
	for _, node := range slices.Sorted(maps.Keys(h.marks)) {
		m, w := h.marks[node], heard[node]
		if !w.heard && h.Elsewhere != nil && h.Elsewhere(node) {
			continue
		}
		if next := decide(m, w, time.Now()); !next.equal(m) {
			failed.add(h.settle(ctx, node, w))
		} else if m.empty() && w.volumes == 0 {
			delete(h.marks, node)
		}
	}
	held := 0
	for _, m := range h.marks {
		if m.held() {
			held++
		}
	}
	h.Metrics.NodesHeld(held)
	return failed.err()
}

// mostTold bounds how many nodes an error tells of.
const mostTold = 5

// failures are what failed of nodes that are looked at one after the other.
type failures struct {
	first []error
	more  int
}

func (f *failures) add(err error) {
	switch {
	case err == nil:
	case len(f.first) < mostTold:
		f.first = append(f.first, err)
	default:
		f.more++
	}
}

func (f *failures) err() error {
	if f.more > 0 {
		f.first = append(f.first, fmt.Errorf("and %d more", f.more))
	}
	return errors.Join(f.first...)
}
