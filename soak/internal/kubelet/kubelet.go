package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Config is what a kubelet needs. All fields must be set but the Timing's.
type Config struct {
	// Root is the kubelet's directory, in a cluster /var/lib/kubelet; the pods
	// were made with it.
	Root string
	// Socket is the path of the driver's node service.
	Socket string
	// Driver is the driver's name, Node that of the node.
	Driver string
	Node   string
	API    *API
	// Listener is told what happens.
	Listener Listener
	// Mounted reports whether a path is a mount point. An error that is
	// fs.ErrNotExist says that it is not.
	Mounted func(path string) (bool, error)
	Timing  Timing
}

func (c Config) check() error {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Root", c.Root != ""},
		{"Socket", c.Socket != ""},
		{"Driver", c.Driver != ""},
		{"Node", c.Node != ""},
		{"API", c.API != nil},
		{"Listener", c.Listener != nil},
		{"Mounted", c.Mounted != nil},
	} {
		if !field.set {
			return fmt.Errorf("start kubelet: Config.%s is missing", field.name)
		}
	}
	return nil
}

// Kubelet is one life of a kubelet, from a start to a crash.
type Kubelet struct {
	cfg    Config
	client client
	crash  context.CancelFunc
	dead   <-chan struct{}
	// group counts all goroutines.
	group sync.WaitGroup
	// owner takes what is to be done by the goroutine that owns the fields below.
	owner chan func()

	actual  *actual
	pending *pending
	// underway is how many operations there are for a pod.
	underway   map[*Pod]int
	started    map[*Pod]bool
	registered bool
}

// Start starts a kubelet. It first looks through its directories for what an
// earlier one may have mounted.
func Start(cfg Config) (*Kubelet, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Timing = cfg.Timing.orReal()
	found, err := reconstruct(cfg.Root, cfg.Driver, cfg.API)
	if err != nil {
		return nil, fmt.Errorf("start kubelet: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelet{
		cfg:      cfg,
		client:   client{socket: cfg.Socket, timeout: cfg.Timing.CallTimeout, listener: cfg.Listener},
		crash:    cancel,
		dead:     ctx.Done(),
		owner:    make(chan func()),
		actual:   found,
		pending:  newPending(cfg.Timing),
		underway: make(map[*Pod]int),
		started:  make(map[*Pod]bool),
	}
	k.group.Go(func() { k.register(ctx) })
	k.group.Go(func() { k.run(ctx) })
	return k, nil
}

// Crash does what SIGKILL does to a kubelet: all calls in flight are given up at
// once, and everything that it knew is forgotten. It returns when none of its
// goroutines is left; the listener's own are not waited for. The listener must
// not call it from Called, Unmounted or Gone, which it waits for.
func (k *Kubelet) Crash() {
	k.crash()
	k.group.Wait()
}

// register asks the driver for its ID of the node, until it gives one. Without
// it the driver is not registered and gets no other calls.
func (k *Kubelet) register(ctx context.Context) {
	_ = persist(ctx, k.cfg.Timing, nil, func() error {
		id, err := k.client.nodeID(ctx)
		if err == nil && id == "" {
			err = errors.New("NodeGetInfo returned no node ID")
		}
		if err != nil {
			if ctx.Err() == nil {
				k.cfg.API.noteUnregistered(err)
			}
			return err
		}
		k.cfg.API.register(id)
		k.post(func() { k.registered = true })
		return nil
	})
}

// run is the reconciler's loop.
func (k *Kubelet) run(ctx context.Context) {
	ticker := time.NewTicker(k.cfg.Timing.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-k.owner:
			do()
		case now := <-ticker.C:
			k.pass(ctx, now)
		}
	}
}

// pass compares the worlds once.
func (k *Kubelet) pass(ctx context.Context, now time.Time) {
	if !k.registered {
		return
	}
	pods := k.cfg.API.observe()
	k.cfg.API.reportInUse(k.actual.inUse(pods))
	for _, a := range k.actual.reconcile(pods) {
		k.carryOut(ctx, a, now)
	}
}

// post has the owner do something, unless the kubelet crashes first. It tells
// which of the two it was.
func (k *Kubelet) post(do func()) bool {
	select {
	case k.owner <- do:
		return true
	case <-k.dead:
		return false
	}
}
