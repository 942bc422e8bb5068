package poolnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// API is what a Keeper asks the API server. [kubeapi.Client] does it.
type API interface {
	ClusterID(context.Context) (string, error)
	EnsureNode(context.Context, kubeapi.NewNode) (kubeapi.Change, error)
}

// Config is what a Keeper works with.
type Config struct {
	API API
	// Node is the node's name.
	Node string
	// Network is the storage network; invalid where the node's InternalIP is used.
	Network netip.Prefix
	// Given are the addresses that Kubernetes has of the node, its InternalIP first.
	Given []netip.Addr
	// Up is called with true when the PoolNode is right, and with false when it cannot be kept right. It
	// may be nil.
	Up  func(bool)
	Log logr.Logger
}

// pace sets the times of a Keeper; tests shorten them.
type pace struct {
	// look is the time between two looks at the node's addresses, check that between two at the PoolNode.
	look, check time.Duration
	failures    retry.Backoff
}

var usualPace = pace{
	look: 10 * time.Second, check: time.Minute, failures: retry.Backoff{First: time.Second, Longest: time.Minute, Jitter: 0.4},
}

// Keeper keeps the PoolNode right, in a goroutine of its own. While the API server is away it tries again
// at least once per minute.
type Keeper struct {
	cfg       Config
	pace      pace
	addresses func() ([]netip.Addr, error)
	source    func(netip.Prefix, []netip.Addr) netip.Addr
	cancel    context.CancelFunc
	task      sync.WaitGroup
	// known is closed when iqn is.
	known chan struct{}
	iqn   string

	mu sync.Mutex
	// problem is why the PoolNode cannot be kept right; nil when it is right, or at the start.
	problem error

	// The rest is the goroutine's alone.

	// last is the address that was chosen before.
	last netip.Addr
	// right is what the PoolNode says, since checked.
	right   string
	checked time.Time
	every   time.Duration
}

// Start starts a Keeper. Stop it.
func Start(cfg Config) *Keeper { return start(cfg, usualPace, interfaces, source) }

func start(cfg Config, p pace, addresses func() ([]netip.Addr, error), source func(netip.Prefix, []netip.Addr) netip.Addr) *Keeper {
	if cfg.Up == nil {
		cfg.Up = func(bool) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{cfg: cfg, pace: p, addresses: addresses, source: source, cancel: cancel, known: make(chan struct{})}
	k.task.Go(func() { k.run(ctx) })
	return k
}

// Stop ends the keeper and its request, and waits for that. The PoolNode stays.
func (k *Keeper) Stop() {
	k.cancel()
	k.task.Wait()
}

// IQN returns the name of the node's iSCSI initiator. It waits until the API server has told which cluster
// this is, which it has to do once.
func (k *Keeper) IQN(ctx context.Context) (string, error) {
	select {
	case <-k.known:
		return k.iqn, nil
	default:
	}
	select {
	case <-k.known:
		return k.iqn, nil
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		return "", fmt.Errorf("%w: the name of this node's iSCSI initiator is not known before the API server has answered: %w",
			volume.ErrUnavailable, errors.Join(ctx.Err(), k.problem))
	}
}

func (k *Keeper) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := k.pace.look
		err := k.keep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			wait = k.pace.failures.After(failures)
			if failures&(failures-1) == 0 { // the 1st, 2nd, 4th, 8th...
				k.cfg.Log.Error(err, "the PoolNode of this node cannot be kept right; this is tried again", "failures", failures)
			}
		case failures > 0:
			k.cfg.Log.Info("the PoolNode of this node is kept right again", "failures", failures)
			failures = 0
		}
		k.mu.Lock()
		k.problem = err
		k.mu.Unlock()
		k.cfg.Up(err == nil)
		_ = retry.Pause(ctx, wait)
	}
}

// keep makes the PoolNode right, if it is time to look or something has changed.
func (k *Keeper) keep(ctx context.Context) error {
	if k.iqn == "" {
		cluster, err := k.cfg.API.ClusterID(ctx)
		if err != nil {
			return err
		}
		k.iqn = pools.IQN(k.cfg.Node, cluster)
		close(k.known)
	}
	own, err := k.addresses()
	if err != nil {
		return err
	}
	h := Host{Addresses: own, Given: k.cfg.Given, Last: k.last}
	if k.cfg.Network.IsValid() {
		h.Source = k.source(k.cfg.Network, own)
	}
	address, why, err := Choose(k.cfg.Network, h)
	if err != nil {
		return err
	}
	if address != k.last {
		k.cfg.Log.Info("chose the node's address on the storage network", "address", address.String(), "because", why)
		k.last = address
	}
	if k.right == address.String() && time.Since(k.checked) < k.every {
		return nil
	}
	k.right = ""
	change, err := k.cfg.API.EnsureNode(ctx, kubeapi.NewNode{Name: k.cfg.Node, Addresses: []string{address.String()}, IQN: k.iqn})
	if err != nil {
		return err
	}
	if change != kubeapi.Unchanged {
		k.cfg.Log.Info("wrote the PoolNode of this node", "address", address.String(), "iqn", k.iqn, "made", change == kubeapi.Made)
	}
	k.right, k.checked, k.every = address.String(), time.Now(), retry.Around(k.pace.check)
	return nil
}
