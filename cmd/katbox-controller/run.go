package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	corev1 "k8s.io/api/core/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/katbox/katbox/actors/pools"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/controller/csi"
	"github.com/katbox/katbox/internal/controller/poolmetrics"
	"github.com/katbox/katbox/internal/controller/vpsa"
	"github.com/katbox/katbox/internal/controller/watch"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/logging"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/ops"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/lib/socket"
	words "github.com/katbox/katbox/internal/model/pools"

	// For arrays behind https: the image has no certificates of authorities.
	_ "golang.org/x/crypto/x509roots/fallback"
)

const (
	// stopTimeout bounds the ordered stop, the others one step of it.
	stopTimeout   = 20 * time.Second
	callsTimeout  = 5 * time.Second
	actorsTimeout = 10 * time.Second
	// arraysSettle: what an array still works on for a controller that has ended is done after this time.
	arraysSettle   = 30 * time.Second
	answersTimeout = time.Second
	// socketInterval is how often it is looked whether the socket is still in its place.
	socketInterval = 5 * time.Second
	// slowStart is when a start that still waits for the first lists is logged, and again.
	slowStart = 30 * time.Second
)

// run is the controller with its log on stdout.
func run(ctx context.Context, o options, stdout io.Writer) error {
	counted := poolmetrics.New(version, revision)
	sink, err := logging.NewSink(o.logFormat, stdout, counted.LogLineDropped)
	if err != nil {
		return err
	}
	defer sink.Close(program.OutputTimeout)
	z, err := logging.New(o.logLevel, o.logFormat, sink)
	if err != nil {
		return err
	}
	log := zapr.NewLogger(z)
	klog.SetLogger(log.WithName("client-go"))
	cluster, err := connect(o)
	if err != nil {
		return err
	}
	return live(ctx, o, cluster, counted, log)
}

// instance is one run of the controller. Each part starts with what started before it.
type instance struct {
	o       options
	cluster clients
	counted *poolmetrics.Metrics
	log     logr.Logger
	// stops contains a function for each part that has started.
	stops []func(context.Context)
	// failed delivers why the controller cannot go on.
	failed chan error
	// serving is the actors, once they serve.
	serving atomic.Pointer[pools.Controller]

	lease   *leadership
	actors  *pools.Controller
	watches *watch.Watches
	// nodes is nil without --nodes-endpoint.
	nodes *nodePools

	// fronts answer about pools once began is closed.
	fronts []*front
	began  chan struct{}
}

// front is a CSI driver on its socket. Its Pools are set before the first call of a method.
type front struct {
	kind words.Kind
	csi.Pools
	server *edge.Server
}

// live starts the controller bottom-up, serves until ctx ends or a part fails, and stops what has
// started in reverse. A controller that has lost its lease is not stopped in order: it ends at once.
func live(ctx context.Context, o options, cluster clients, counted *poolmetrics.Metrics, log logr.Logger) error {
	log.Info("starting", "version", version, logkeys.Namespace, o.namespace, "driver", o.driverName)
	status, err := ops.Start(ops.Config{Endpoint: o.httpEndpoint, Metrics: counted.Handler(), Log: log})
	if err != nil {
		return fmt.Errorf("--http-endpoint %s: %w", o.httpEndpoint, err)
	}
	i := &instance{o: o, cluster: cluster, counted: counted, log: log, failed: make(chan error, 7), began: make(chan struct{})}
	status.Recovered(i.healthy)
	// A replica that waits for the lease is as it should be. While one is replaced by another the old
	// one goes when the new one is ready, and only then is the lease free.
	status.Serving(func() error { return nil })

	err = i.serve(ctx, status)
	if errors.Is(err, errLost) {
		return err
	}
	status.Stopping()
	i.stop()
	ending, cancel := context.WithTimeout(context.Background(), answersTimeout)
	defer cancel()
	if err := status.Stop(ending); err != nil {
		log.Info("stopped answering", logkeys.Cause, err.Error())
	}
	log.Info("stopped")
	return err
}

// serve starts all parts, and waits until ctx ends or one fails.
func (i *instance) serve(ctx context.Context, status *ops.Server) error {
	for _, start := range []func(context.Context) error{i.listen, i.startNodes, i.lead, i.startActors, i.follow, i.begin} {
		err := start(ctx)
		switch {
		case errors.Is(err, errLost):
			return err
		case ctx.Err() != nil:
			i.log.Info("stopping before all has started")
			return nil
		case err != nil:
			return err
		}
	}
	i.counted.Leads(true)
	i.log.Info("serving")
	var lost <-chan struct{}
	if i.lease != nil {
		lost = i.lease.lost
	}
	select {
	case <-ctx.Done():
		i.log.Info("stopping")
		return nil
	case <-lost:
		return errLost
	case err := <-i.actors.Failed():
		return err
	case err := <-i.failed:
		return err
	case err := <-status.Failed():
		return err
	}
}

// healthy returns why the controller does not work. One that waits for the lease does.
func (i *instance) healthy(ctx context.Context) error {
	if actors := i.serving.Load(); actors != nil {
		return actors.Ready(ctx)
	}
	return nil
}

// onStop adds the stop of a part that has started.
func (i *instance) onStop(stop func(context.Context)) { i.stops = append(i.stops, stop) }

// stop stops all parts, the last one first. The lease goes last: until then no other replica serves.
func (i *instance) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, stop := range slices.Backward(i.stops) {
		stop(ctx)
	}
}

// lead waits for the lease.
func (i *instance) lead(ctx context.Context) (err error) {
	if !i.o.elect {
		return nil
	}
	if i.lease, err = campaign(i.o, i.cluster, i.log.WithName("leader")); err != nil {
		return err
	}
	i.onStop(func(context.Context) { i.lease.release() })
	select {
	case <-i.lease.won:
		return nil
	case <-i.lease.lost:
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startActors starts the actors, which do nothing before they know all resources.
func (i *instance) startActors(ctx context.Context) error {
	cluster, err := clusterID(ctx, i.cluster.resources, i.log)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster()
	recording := events.StartRecordingToSink(&typed.EventSinkImpl{Interface: i.cluster.events.Events("")})
	i.onStop(func(context.Context) {
		recording.Stop()
		events.Shutdown()
	})
	i.actors, err = pools.Start(pools.Config{
		Resources: pools.Resources{
			Client: i.cluster.resources,
			Events: events.NewRecorder(i.cluster.scheme, corev1.EventSource{Component: programName}),
		},
		Connect:   i.array,
		Namespace: i.o.namespace, CHAPNamespace: i.o.chapNamespace, Driver: i.o.driverName, LocalDriver: i.o.localDriverName,
		Cluster:       cluster,
		ProbeInterval: i.o.probeInterval, SyncInterval: i.o.syncInterval, Settle: arraysSettle,
		Metrics: i.counted, Log: i.log,
	})
	if err != nil {
		return err
	}
	i.serving.Store(i.actors)
	i.onStop(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, actorsTimeout)
		defer cancel()
		if err := i.actors.Stop(ctx); err != nil {
			// The next controller looks at the array, and goes on.
			i.log.Info("operations were broken off", logkeys.Cause, err.Error())
		}
	})
	return nil
}

// array makes the client of an array.
func (i *instance) array(a pools.Access) (array.Array, error) {
	return vpsa.New(vpsa.Config{
		Endpoint: a.Endpoint, Token: vpsa.Token(a.Token), CA: a.CA, InsecureSkipVerify: a.Insecure, Timeout: a.Timeout, PoolID: a.PoolID,
		Log: i.log.WithValues("pool", a.Pool), Metrics: i.counted,
	})
}

// follow waits until the actors know all resources.
func (i *instance) follow(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	i.watches = watch.Start(life, watch.Config{
		API: i.cluster.resources, Kinds: kinds, Sink: resources{i.actors, i.counted}, Up: i.counted.Watched, Log: i.log.WithName("watch"),
	})
	i.onStop(func(context.Context) {
		end()
		i.watches.Wait()
	})
	var lost <-chan struct{}
	if i.lease != nil {
		lost = i.lease.lost
	}
	for {
		slow, cancel := context.WithTimeout(ctx, slowStart)
		select {
		case <-i.watches.Listed():
			cancel()
			i.actors.Listed()
			return nil
		case <-lost:
			cancel()
			return errLost
		case <-slow.Done():
			cancel()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		i.log.Info("waiting for the first lists", "missing", i.watches.Missing())
	}
}

// listen opens the sockets for the sidecars, which wait there until this replica serves.
func (i *instance) listen(ctx context.Context) error {
	for _, driver := range []struct {
		kind                 words.Kind
		name, flag, endpoint string
	}{
		{words.KindArray, i.o.driverName, "endpoint", i.o.endpoint},
		{words.KindLocal, i.o.localDriverName, "local-endpoint", i.o.localEndpoint},
	} {
		if driver.endpoint == "" {
			continue
		}
		if err := i.open(ctx, driver.kind, driver.name, driver.endpoint); err != nil {
			return fmt.Errorf("--%s: %w", driver.flag, err)
		}
	}
	return nil
}

// open opens the socket of one driver.
func (i *instance) open(ctx context.Context, kind words.Kind, name, endpoint string) error {
	f := &front{kind: kind}
	d, err := csi.New(csi.Config{
		Kind: kind, Name: name, Version: version, Pools: f, Serving: i.began, Log: i.log.WithValues("driver", name),
		Count: func(method string) edge.Calls { return i.counted.Method(method) },
	})
	if err != nil {
		return err
	}
	path, err := socket.Path(endpoint)
	if err != nil {
		return err
	}
	l, err := socket.Listen(path)
	if err != nil {
		return err
	}
	f.server = csi.NewServer(d)
	i.fronts = append(i.fronts, f)
	i.onStop(func(context.Context) { f.server.Server.Stop() }) // calls that still wait
	go func() {
		if err := f.server.Serve(l); err != nil {
			i.failed <- fmt.Errorf("serve on %s: %w", path, err)
		}
	}()
	go func() {
		if err := l.Lost(ctx, socketInterval); err != nil {
			i.failed <- fmt.Errorf("%s: %w", name, err)
		}
	}()
	i.log.Info("listening", "path", path, "driver", name)
	return nil
}

// begin serves the calls that wait, and all others.
func (i *instance) begin(context.Context) error {
	for _, f := range i.fronts {
		f.Pools = i.actors.OfKind(f.kind)
		i.onStop(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, callsTimeout)
			defer cancel()
			if err := f.server.Stop(ctx); err != nil {
				// The sidecars repeat their calls.
				i.log.Info("stopped serving", logkeys.Cause, err.Error())
			}
		})
	}
	i.nodes.lead(i.actors)
	close(i.began)
	return nil
}
