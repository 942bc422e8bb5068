package uplink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
)

// Volumes are the volumes of the node. None of its methods may block for long.
type Volumes interface {
	// Awake describes the volumes that are published or changing.
	Awake(context.Context) ([]volume.Description, error)
	// Holdings counts the retained volumes by namespace.
	Holdings(context.Context) ([]volume.Holding, error)
	// Own notes the owner of a volume. It checks the answer; its error wraps [volume.ErrInvalid] then,
	// and [volume.ErrNotFound] for a volume of that pod that is not known.
	Own(context.Context, volume.ID, volume.PodUID, volume.Owner) error
}

// Config is what an Uplink works with.
type Config struct {
	// Gateway is where gateways listen, or else Controller where controllers do: HOST:PORT, or several
	// separated by commas.
	Gateway, Controller string
	// From is the address that connections come from; nil for any of this machine.
	From net.Addr
	// CAFile holds the certificates that sign those of the other end. TokenFile holds the token of the pod's
	// ServiceAccount. Both are read for each connection, and may appear later.
	CAFile, TokenFile string
	// Node is the node's name in the cluster, Version that of the daemon.
	Node, Version string
	// Handler answers a gateway's requests below /v1/volumes; Volumes are what it learns of.
	Handler http.Handler
	Volumes Volumes
	// Pools are reported to a controller, which asks them.
	Pools local.Pools
	// Outcomes may be nil: then gateways learn that this node takes none. Of a pod's volumes only
	// those of the CSI driver with the name Driver count; all of them if that is empty. Ends: they keep how a pod ended,
	// too; else it is not asked for, and left out.
	Outcomes Outcomes
	Driver   string
	Ends     bool
	// Uploads are the asks of the archive, Archive returns what waits for it, and does not block. Both are nil where nothing
	// is archived.
	Uploads *Uploads
	Archive func() api.ArchiveWaiting
	Metrics *metrics.Metrics
	// Log may be zero.
	Log logr.Logger
}

// CheckTarget returns why a Config.Gateway, or a Config.Controller, cannot be used.
func CheckTarget(text string) error {
	_, err := parseTargets(text)
	return err
}

// checkFiles does not look whether they are there.
func (c Config) checkFiles() error {
	for _, file := range []struct{ name, path string }{{"the file of the CA", c.CAFile}, {"the file of the token", c.TokenFile}} {
		if !filepath.IsAbs(file.path) {
			return fmt.Errorf("%s, %q, is not an absolute path", file.name, file.path)
		}
	}
	return nil
}

// check names the first field that is missing.
func (c Config) check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Gateway", c.Gateway != "" || c.Controller != ""}, {"CAFile", c.CAFile != ""}, {"TokenFile", c.TokenFile != ""},
		{"Node", c.Node != ""}, {"Handler", c.Gateway == "" || c.Handler != nil}, {"Volumes", c.Gateway == "" || c.Volumes != nil},
		{"Pools", c.Controller == "" || c.Pools != nil}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("uplink: Config.%s is missing", field.name)
		}
	}
	if c.Gateway != "" && c.Controller != "" {
		return errors.New("uplink: Config.Gateway and Config.Controller are both given; each has an Uplink of its own")
	}
	return c.checkFiles()
}

// target is a HOST:PORT of the configuration.
type target struct{ host, port string }

func (t target) String() string { return net.JoinHostPort(t.host, t.port) }

// parseTargets reads addresses that are separated by commas.
func parseTargets(text string) (all []target, err error) {
	for part := range strings.SplitSeq(text, ",") {
		host, port, err := net.SplitHostPort(part)
		if number, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil || number == 0 {
			return nil, fmt.Errorf("%q is not HOST:PORT, such as katbox-gateway-nodes.katbox.svc:9443", part)
		}
		if t := (target{host, port}); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all, nil
}

// Uplink keeps the connections to the gateways, or to the controllers.
type Uplink struct {
	cfg     Config
	peer    peer
	pace    pace
	targets []target
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	asks    *asks
	// owning bounds how many answers about owners are kept at once.
	owning chan struct{}
	// running counts the requests that are handled, summaries those that never end by themselves.
	running, summaries atomic.Int64
	cancel             context.CancelFunc
	tasks              sync.WaitGroup

	mu sync.Mutex
	// found are the addresses of each target. changed has a value when something about a link has changed.
	found   map[target][]netip.AddrPort
	changed chan struct{}
	// links are by address, connections are all that are open; stopped: there may be no more.
	links       map[netip.AddrPort]*link
	connections map[*connection]struct{}
	unresolved  map[target]error
	stopped     bool
}

// Start begins to connect. It returns at once.
func Start(cfg Config) (*Uplink, error) { return start(cfg, usualPace, resolver.lookup) }

func start(cfg Config, times pace, lookup func(context.Context, string) ([]netip.Addr, error)) (*Uplink, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := gateways
	if cfg.Controller != "" {
		p = controllers(cfg.Pools)
	}
	targets, err := parseTargets(cfg.Gateway + cfg.Controller)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	u := &Uplink{
		cfg: cfg, peer: p, pace: times, targets: targets, lookup: lookup, cancel: cancel, asks: newAsks(times.again, cfg.Metrics),
		owning: make(chan struct{}, mostOwning), links: map[netip.AddrPort]*link{}, connections: map[*connection]struct{}{},
		unresolved: map[target]error{}, found: map[target][]netip.AddrPort{}, changed: make(chan struct{}, 1),
	}
	u.tasks.Go(func() { u.find(ctx) })
	if cfg.Volumes != nil {
		u.tasks.Go(func() { u.repeatAsks(ctx) })
	}
	return u, nil
}

// Published asks, as soon as a gateway is connected, whose the volume is. It never blocks. On a nil
// Uplink it does nothing.
func (u *Uplink) Published(r volume.Record) {
	if u != nil {
		u.asks.add(r)
	}
}

// Ask asks for the owner of a volume that waits for the answer before it is published. It reports whether a gateway
// is connected that can be asked. It never blocks. On a nil Uplink it does nothing.
func (u *Uplink) Ask(r volume.Record) bool { return u != nil && u.asks.add(r) }

// Stop closes all connections. What runs on them may end within ctx, and is cut then. Afterwards no
// request is handled, unless the disk hangs, which the error says.
func (u *Uplink) Stop(ctx context.Context) error {
	u.cancel()
	u.mu.Lock()
	u.stopped = true
	open := make([]*connection, 0, len(u.connections))
	for c := range u.connections {
		open = append(open, c)
	}
	u.mu.Unlock()
	for _, c := range open {
		c.goAway()
	}
	cut := !idle(ctx, &u.running)
	for _, c := range open {
		c.cut()
	}
	ended := make(chan struct{})
	go func() {
		u.tasks.Wait()
		close(ended)
	}()
	// Handlers end as soon as they notice that their connection was cut.
	last, cancel := context.WithTimeout(context.Background(), u.pace.grace)
	defer cancel()
	select {
	case <-ended:
	case <-last.Done():
	}
	if !idle(last, &u.running) || !idle(last, &u.summaries) {
		return fmt.Errorf("%d requests of %s are still running", u.running.Load()+u.summaries.Load(), u.peer)
	}
	if cut {
		return fmt.Errorf("%w: %s's", errCut, u.peer)
	}
	return nil
}

// errCut: not all was answered.
var errCut = errors.New("requests were cut off")

// handlersInterval is the time between two looks whether all requests have ended.
const handlersInterval = 10 * time.Millisecond

// idle waits until none of the requests that are counted is handled; it returns false if ctx ends first.
func idle(ctx context.Context, counted *atomic.Int64) bool {
	for counted.Load() > 0 {
		if retry.Pause(ctx, handlersInterval) != nil {
			return false
		}
	}
	return true
}

// State is how it stands with one address of the gateway, or of the controller.
type State struct {
	// Target is the HOST:PORT that the address belongs to. Address is empty if there is none.
	Target, Address string
	// Since is when the connection was made; zero if there is none.
	Since time.Time
	// StandsBy: another address leads to the same replica, and has the connection.
	StandsBy bool
	// Err is why there is no connection, or why it cannot be renewed.
	Err error
}

// States returns how it stands with each address, sorted.
func (u *Uplink) States() (all []State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for t, err := range u.unresolved {
		all = append(all, State{Target: t.String(), Err: err})
	}
	for _, l := range u.links {
		all = append(all, l.report())
	}
	slices.SortFunc(all, func(a, b State) int {
		return strings.Compare(a.Target+" "+a.Address, b.Target+" "+b.Address)
	})
	return all
}
