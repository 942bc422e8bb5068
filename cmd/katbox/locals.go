package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors"
	actorslocal "github.com/katbox/katbox/actors/local"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	attachdisk "github.com/katbox/katbox/internal/node/attach/disk"
	"github.com/katbox/katbox/internal/node/csi/persistent"
	"github.com/katbox/katbox/internal/node/localdisk"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/uplink"
)

const (
	// localNodeTimeout bounds the stop of that part, so that the rest has time for its own.
	localNodeTimeout = 5 * time.Second
	// firstDisks is how long the registration waits for disks that are slow: the kubelet asks only then which pools
	// there are.
	firstDisks = 5 * time.Second
)

// locals is the part of the daemon that serves volumes on the node's own disks. It starts behind everything else and
// in a goroutine of its own, as arrays does. A nil one stands for a daemon without this part.
type locals struct {
	o   options
	i   *instance
	log logr.Logger
	// node is set once it takes calls, registrar while the driver is registered.
	node      atomic.Pointer[actorslocal.Node]
	registrar atomic.Pointer[kubelet.Registrar]
	// uplink is set while the node is to be connected to the controller.
	uplink atomic.Pointer[uplink.Uplink]
	// changed says that a pool has appeared, or come back.
	changed chan struct{}
}

// serveLocal starts the part that serves volumes on the node's own disks, if there is one. It does not wait for it.
func (i *instance) serveLocal(context.Context) error {
	if !i.o.local.serves() {
		return nil
	}
	l := &locals{o: i.o, i: i, log: i.log.WithName("local"), changed: make(chan struct{}, 1)}
	i.counted.LocalServed()
	if i.o.registrationDir != "" {
		i.counted.LocalRegistered(false)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	i.onStop(func(ctx context.Context) error {
		cancel()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop serving volumes on the node's disks: %w", ctx.Err())
		}
	})
	i.locals.Store(l)
	go func() {
		defer close(ended)
		l.live(ctx)
	}()
	return nil
}

// part is what serves the driver.
func (l *locals) part() *part {
	return &part{
		what: "volumes on the node's disks", flag: "--local-endpoint", endpoint: l.o.local.endpoint, log: l.log, registrar: &l.registrar,
	}
}

// live serves until ctx ends, and stops what it has started.
func (l *locals) live(ctx context.Context) {
	l.part().retry(ctx, l.startNode)
	if l.node.Load() != nil {
		l.part().retry(ctx, func(context.Context) error { return l.connect() })
		l.awaitDisks(ctx)
		select {
		case <-l.changed: // the kubelet has not asked yet
		default:
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			l.tell(ctx)
		}()
		l.part().retry(ctx, l.serve)
		<-told
	}
	l.stop()
}

// startNode starts the actors, which look for the disks.
func (l *locals) startNode(ctx context.Context) error {
	places, err := l.o.local.places()
	if err != nil {
		return err // it was checked before
	}
	path, err := socket.Path(l.o.local.endpoint)
	if err != nil {
		return err
	}
	paths := make([]string, 0, len(places))
	for _, place := range places {
		paths = append(paths, place.Path)
	}
	pools, err := openKnown(filepath.Join(filepath.Dir(path), knownName), paths)
	if err != nil {
		return err
	}
	for i := range places {
		places[i].UUID = pools.at(places[i].Path)
	}
	reserved, err := quota.Reserved("/etc")
	if err != nil {
		return err
	}
	locations := localdisk.NewLocations(paths...)
	d := &disks{
		known: pools, hostRoot: l.o.arrays.hostRoot, own: []string{cmp.Or(l.o.arrays.hostRoot, "/"), l.o.kubeletDir}, log: l.log,
		projects: localdisk.NewProjects(quota.LocalRange, reserved, l.i.counted.LimitChanged, l.log), locations: locations,
		turns: pace.NewTurns(l.o.eraseParallel, pace.NewCalls(), actors.LowPriority, func(int) {}),
	}
	n, err := actorslocal.Start(actorslocal.Config{
		Places: places, Open: d.open, Metrics: l.i.counted,
		Machine: machine{attachdisk.Tools{Root: l.o.arrays.hostRoot, Log: l.log}, locations},
		Changed: l.noteChange, HostRoot: l.o.arrays.hostRoot, Threads: l.o.local.threads(l.i.threads), Log: l.log,
	})
	if err != nil {
		return err
	}
	l.node.Store(n)
	go func() {
		select {
		case <-ctx.Done():
		case err := <-n.Failed():
			// What the actors were doing may still run. Only a new process knows that nothing does.
			l.i.failed <- fmt.Errorf("volumes on the node's disks: %w", err)
		}
	}()
	return nil
}

// disks opens pools.
type disks struct {
	known    *known
	hostRoot string
	// own are directories on the node's own disks, which get a pool only where that is wanted.
	own      []string
	projects *localdisk.Projects
	// locations know where the pools are, for machine.
	locations *localdisk.Locations
	turns     *pace.Turns
	log       logr.Logger
}

// open opens the pool in a directory. Where there was none before, the one that is there is expected from now on.
func (d *disks) open(_ context.Context, place actorslocal.Place) (localdisk.Dir, error) {
	notOn := d.own
	if place.OnRootDisk {
		notOn = nil
	}
	p, err := localdisk.Open(place.Path, localdisk.Config{
		Class: place.Class, Backend: place.Backend, Expect: place.UUID, NotOn: notOn, HostRoot: d.hostRoot, Projects: d.projects,
		Locations: d.locations, Turns: d.turns, Log: d.log,
	})
	if err != nil {
		return nil, err
	}
	if err := d.known.remember(place.Path, p.Describe().UUID); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// machine is what is done with mounts whatever pool they are of.
type machine struct {
	attachdisk.Tools
	locations *localdisk.Locations
}

// Table reads the mount table.
func (machine) Table() ([]attach.Mount, error) { return attach.Table() }

// NameOf returns the volume that a mount is of.
func (a machine) NameOf(m attach.Mount) (string, bool) { return a.locations.NameOf(m) }

// Lost reports whether a mount shows a disk that was taken away under its volume.
func (machine) Lost(m attach.Mount) bool { return localdisk.Lost(m) }

// Unstage takes a volume away from where it is staged.
func (a machine) Unstage(ctx context.Context, name, path string) error {
	return a.locations.Unstage(ctx, name, path)
}

// noteChange notes that a pool has appeared.
func (l *locals) noteChange() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// awaitDisks waits until all pools are there, but not for long.
func (l *locals) awaitDisks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstDisks)
	defer cancel()
	for {
		segments, err := l.node.Load().Segments(ctx)
		if err != nil || len(segments) == len(l.o.local.pools) {
			return
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			return
		}
	}
}

// tell makes the kubelet ask anew which pools there are, each time that one has appeared.
func (l *locals) tell(ctx context.Context) {
	for {
		select {
		case <-l.changed:
			l.registrar.Load().Again()
		case <-ctx.Done():
			return
		}
	}
}

// serve serves and keeps the driver registered, until ctx ends or the socket is lost.
func (l *locals) serve(ctx context.Context) error {
	d, err := persistent.New(persistent.Config{
		Kind: pools.KindLocal, Name: l.o.local.driverName, Version: version, NodeID: l.o.nodeID, KubeletDir: l.o.kubeletDir,
		MaxVolumes: l.o.local.maxVolumes, Volumes: l.node.Load(), Segments: l.node.Load().Segments, Log: l.log, Trace: l.i.traces.Calls(),
		Count: func(method string) edge.Calls { return l.i.counted.LocalMethod(method) },
	})
	if err != nil {
		return err
	}
	registration := l.o.local.registrarConfig(l.o)
	registration.Registered = l.i.counted.LocalRegistered
	return l.part().serve(ctx, d, registration)
}

// stop stops what startNode has started. Mounts stay: pods use them.
func (l *locals) stop() {
	n := l.node.Load()
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), localNodeTimeout)
	defer cancel()
	l.disconnect(ctx)
	if err := n.Stop(ctx); err != nil {
		l.log.Info("stopped volumes on the node's disks; the next start goes on with what has not ended", logkeys.Cause, err.Error())
	}
}

// reportLocal writes which pools there are on the node's disks.
func (i *instance) reportLocal(ctx context.Context, w io.Writer) error {
	l := i.locals.Load()
	switch {
	case l == nil:
		_, err := fmt.Fprintln(w, "not served: there is no --local-pool")
		return err
	case l.node.Load() == nil:
		return errors.New("not served yet; the log says why")
	}
	if err := l.registrar.Load().Registered(); err != nil {
		fmt.Fprintf(w, "kubelet   %s\n", volume.OneLine(err))
	}
	all, err := l.node.Load().Places(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		fmt.Fprintf(w, "%s class=%s %q backend=%s fs=%s hardLimit=%t total=%d free=%d promised=%d %s\n", cmp.Or(p.UUID, "-"), p.Class, p.Path,
			p.Backend, p.FSType, p.HardLimit, p.Total, p.Free, p.Provisioned, p.Failed)
	}
	return nil
}

// healthy returns nil while the actors answer. A disk that is away makes no difference.
func (l *locals) healthy(ctx context.Context) error {
	if l == nil || l.node.Load() == nil {
		return nil
	}
	if err := l.node.Load().Ready(ctx); err != nil {
		return fmt.Errorf("the actors of the volumes on the node's disks do not answer: %w", err)
	}
	return nil
}
