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

// firstDisks is how long the registration waits for disks that are slow: the kubelet asks only then which pools there are.
const firstDisks = 5 * time.Second

// locals is the part of the daemon that serves volumes on the node's own disks. A nil one stands for a daemon without this
// part.
type locals struct {
	*part
	// pools is set before the part is started.
	pools *actorslocal.Node
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
	l := &locals{changed: make(chan struct{}, 1), part: &part{
		o: i.o, i: i, what: "volumes on the node's disks", flag: "--local-endpoint", endpoint: i.o.local.endpoint, log: i.log.WithName("local"),
	}}
	l.kind = l
	i.counted.LocalServed()
	if i.o.registrationDir != "" {
		i.counted.LocalRegistered(false)
	}
	i.locals.Store(l)
	l.begin()
	return nil
}

// around connects to the controller, waits for the disks, and makes the kubelet ask anew when one has appeared.
func (l *locals) around(ctx context.Context, serve func()) {
	l.retry(ctx, func(context.Context) error { return l.connect() })
	defer l.disconnect()
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
	serve()
	<-told
}

// open starts the actors, which look for the disks.
func (l *locals) open() (partNode, error) {
	places, err := l.o.local.places()
	if err != nil {
		return nil, err // it was checked before
	}
	path, err := socket.Path(l.o.local.endpoint)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(places))
	for _, place := range places {
		paths = append(paths, place.Path)
	}
	pools, err := openKnown(filepath.Join(filepath.Dir(path), knownName), paths)
	if err != nil {
		return nil, err
	}
	for i := range places {
		places[i].UUID = pools.at(places[i].Path)
	}
	reserved, err := quota.Reserved("/etc")
	if err != nil {
		return nil, err
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
		return nil, err
	}
	l.pools = n
	return n, nil
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
		segments, err := l.pools.Segments(ctx)
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

// driver describes the driver of the node's pools.
func (l *locals) driver() (persistent.Config, kubelet.RegistrarConfig) {
	registration := l.o.local.registrarConfig(l.o)
	registration.Registered = l.i.counted.LocalRegistered
	return persistent.Config{
		Kind: pools.KindLocal, Name: l.o.local.driverName, MaxVolumes: l.o.local.maxVolumes, Segments: l.pools.Segments,
		Count: func(method string) edge.Calls { return l.i.counted.LocalMethod(method) },
	}, registration
}

// close has nothing to undo.
func (l *locals) close() {}

// reportLocal writes which pools there are on the node's disks.
func (i *instance) reportLocal(ctx context.Context, w io.Writer) error {
	l := i.locals.Load()
	switch {
	case l == nil:
		_, err := fmt.Fprintln(w, "not served: there is no --local-pool")
		return err
	case !l.started():
		return errors.New("not served yet; the log says why")
	}
	if err := l.registrar.Load().Registered(); err != nil {
		fmt.Fprintf(w, "kubelet   %s\n", volume.OneLine(err))
	}
	all, err := l.pools.Places(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		fmt.Fprintf(w, "%s class=%s %q backend=%s fs=%s hardLimit=%t total=%d free=%d promised=%d %s\n", cmp.Or(p.UUID, "-"), p.Class, p.Path,
			p.Backend, p.FSType, p.HardLimit, p.Total, p.Free, p.Provisioned, p.Failed)
	}
	return nil
}
