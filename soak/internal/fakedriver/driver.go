package fakedriver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/node/csi/inline"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/policy"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/testbed"
)

// Config is what a Driver works with. All fields are required, but AdminSocket,
// Lifespan, MaxLifespan, MaxPinned, ReleaseGrace, Headroom, MaxPerOwner, Gateway, CA, Token, Outcomes, Outside, Seen, Quotas
// and Bug may be zero.
type Config struct {
	// Socket is the path on which it listens, Work its working directory and
	// Kubelet that of the kubelet.
	Socket, Work, Kubelet string
	// AdminSocket is the path on which people read retained volumes.
	AdminSocket   string
	Lifespan      time.Duration
	Headroom      float64
	OrphanGrace   time.Duration
	PruneInterval time.Duration
	// ReleaseGrace is how long it keeps what a person releases.
	ReleaseGrace time.Duration
	// MaxLifespan is how long it keeps what asks for a lifespan of its own.
	MaxLifespan time.Duration
	// MaxPinned is which share of the disk it lets pods attach; 0 is all of it.
	MaxPinned float64
	// MaxPerOwner is of how many pods of an owner it keeps the volumes. Gateway is where it asks who owns pods, and CA and Token are
	// the files that it needs to connect there.
	MaxPerOwner        workload.PerOwner
	Gateway, CA, Token string
	// Outcomes says that the kubelet tells on its socket how pods end.
	Outcomes bool
	// Outside is the only directory outside of Work that a bug may damage.
	Outside string
	// Seen is told of each publish whose input is good, as it comes, by many
	// goroutines.
	Seen func(volumeID, podUID string, readOnly bool)
	// Quotas says that the file system of Work enforces project quotas.
	Quotas bool
	Bug    Bug
}

// Driver is the driver, over all its restarts.
type Driver struct {
	cfg  Config
	disk disk
	died chan error

	// hoarding is held while a volume is attached.
	hoarding sync.Mutex

	mu  sync.Mutex
	run *run
	// calls and cpu are what it was asked and what it claims to have used.
	calls int
	cpu   time.Duration
	clock time.Duration
	// doomed is what it deletes wrongly, after a lifespan.
	doomed []doomed
	waste  waste
	// projects is how many volumes have got a project.
	projects uint32
}

// run is the driver from one start to its end.
type run struct {
	*Driver
	server *grpc.Server
	ctx    context.Context // ends with it
	cancel context.CancelFunc
	loops  sync.WaitGroup

	// running is held by each call and each request of people, so that none outlives it.
	running sync.RWMutex

	mu sync.Mutex
	// busy are the volumes that something works on: a call, or the driver itself, whose channel is closed at the end.
	busy map[string]chan struct{}
	// spoilt are the volumes with whose unpublish it did what it does wrong only
	// once, so that the kubelet can get on.
	spoilt map[string]bool
	// stuck is held by a driver that lets all wait for one.
	stuck  sync.RWMutex
	people people
	// uplink is the connection to the gateway; nil without one.
	uplink *uplink.Uplink
	// former are volumes that are gone, for a driver that lists them still.
	former []former
}

// New prepares a driver; Start starts it.
func New(cfg Config) (*Driver, error) {
	if cfg.Socket == "" || cfg.Work == "" || cfg.Kubelet == "" {
		return nil, errors.New("fake: Config.Socket, Work and Kubelet are required")
	}
	if cfg.OrphanGrace <= 0 || cfg.PruneInterval <= 0 {
		return nil, errors.New("fake: Config.OrphanGrace and PruneInterval have to be longer than 0")
	}
	return &Driver{cfg: cfg, disk: disk{records: make(map[string]record)}, died: make(chan error, 1)}, nil
}

// Start starts it, or starts it again. When it returns, calls are answered.
func (d *Driver) Start(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != nil {
		return errors.New("fake: the driver runs already")
	}
	if err := os.MkdirAll(filepath.Join(d.cfg.Work, trashName), 0o750); err != nil {
		return fmt.Errorf("fake: make the trash: %w", err)
	}
	d.recover()
	if err := os.Remove(d.cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("fake: remove the old socket: %w", err)
	}
	listener, err := net.Listen("unix", d.cfg.Socket)
	if err != nil {
		return fmt.Errorf("fake: listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.waste = waste{records: d.waste.records} // what a process wastes goes with it
	// After its end nothing of it may go on: a process would be gone.
	r := &run{Driver: d, ctx: ctx, cancel: cancel, busy: make(map[string]chan struct{}), spoilt: make(map[string]bool)}
	if err := r.serve(); err != nil {
		return errors.Join(err, listener.Close())
	}
	if d.cfg.Outcomes {
		r.loops.Go(func() { r.learn(ctx) })
	}
	r.loops.Go(func() { r.sweep(ctx) })
	r.loops.Go(func() { r.relieve(ctx) })
	r.loops.Go(func() { r.adopt(ctx) })
	go func() {
		if err := r.server.Serve(listener); err != nil {
			d.die(fmt.Errorf("fake: serve: %w", err))
		}
	}()
	d.run = r
	return nil
}

// serve prepares the node's own CSI edge, and its handlers, with the driver behind them.
func (r *run) serve() error {
	counted := metrics.New("fake", "")
	terms, err := policy.New(policy.Bounds{Lifespan: r.cfg.Lifespan, MaxLifespan: max(r.cfg.Lifespan, r.cfg.MaxLifespan)})
	if err != nil {
		return fmt.Errorf("fake: %w", err)
	}
	edge, err := inline.New(inline.Config{
		Name: api.DriverName, Version: "fake", NodeID: testbed.Node, KubeletDir: r.cfg.Kubelet, Volumes: calls{r}, Terms: terms.Terms,
		Log: logr.Discard(), Metrics: counted, Trace: r.intercept,
	})
	if err != nil {
		return fmt.Errorf("fake: %w", err)
	}
	r.server = inline.NewServer(edge).Server
	if err := r.startPeople(counted); err != nil || r.cfg.Gateway == "" {
		return err
	}
	r.uplink, err = uplink.Start(uplink.Config{
		Gateway: r.cfg.Gateway, CAFile: r.cfg.CA, TokenFile: r.cfg.Token, Node: testbed.Node, Version: "fake", Volumes: volumes{r},
		Handler: http.NotFoundHandler(), Metrics: counted,
	})
	return err
}

// Kill ends it as a crash would: calls are broken off.
func (d *Driver) Kill() error { return d.end((*grpc.Server).Stop) }

// Stop ends it in good order, once the running calls are answered.
func (d *Driver) Stop() error {
	if err := d.end((*grpc.Server).GracefulStop); err != nil {
		return err
	}
	if d.cfg.Bug == EndsBadly {
		return errors.New("fake: it ends badly")
	}
	return nil
}

func (d *Driver) end(server func(*grpc.Server)) error {
	d.mu.Lock()
	r := d.run
	d.run = nil
	d.mu.Unlock()
	if r == nil {
		return errors.New("fake: the driver does not run")
	}
	server(r.server)
	r.cancel()
	if r.uplink != nil {
		_ = r.uplink.Stop(r.ctx) // what it cuts ends
	}
	r.stopPeople()
	r.running.Lock()
	defer r.running.Unlock()
	r.loops.Wait()
	return nil
}

// Died delivers why it ended on its own.
func (d *Driver) Died() <-chan error { return d.died }

func (d *Driver) die(err error) {
	select {
	case d.died <- err:
	default:
	}
}

// SetClock sets by how much its wall clock is ahead of the machine's.
func (d *Driver) SetClock(offset time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = offset
}

// wallClock is by how much its wall clock is ahead of the machine's.
func (d *Driver) wallClock() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock
}

// Usage is what it claims to use: the CPU time in proportion to its calls, and
// the same memory and threads always, with what it wastes.
func (d *Driver) Usage() (cpu time.Duration, rss, anon, peak int64, threads int, ok bool) {
	const memory = 10 << 20
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.waste.memory
	return d.cpu, memory + w, memory/2 + w, memory + w, 8 + d.waste.threads, d.run != nil
}

// intercept counts the calls, and ends the driver at some of them if it is to
// crash.
func (r *run) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	const perCall, perRetained, last = 100 * time.Microsecond, 100 * time.Microsecond, 40
	r.running.RLock()
	defer r.running.RUnlock()
	r.Driver.mu.Lock()
	r.calls++
	calls := r.calls
	r.cpu += perCall
	if r.cfg.Bug == CostsMore {
		r.cpu += perRetained * time.Duration(r.disk.retained())
	}
	r.Driver.mu.Unlock()
	if r.cfg.Bug == Crashes && calls == last {
		r.die(fmt.Errorf("fake: panic: call %d, %s, is one too many", calls, info.FullMethod))
		go func() { _ = r.Kill() }() // it fails only if it is ended already
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.miscall(ctx, request, handle)
}
