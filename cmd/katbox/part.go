package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/node/csi/persistent"
)

const (
	// partInterval is the time between two attempts to serve.
	partInterval = time.Second
	// partCallsTimeout bounds the end of calls at a stop. Those that are broken off the kubelet repeats; what they
	// began the next daemon finds.
	partCallsTimeout = 3 * time.Second
	// partNodeTimeout bounds the stop of a part's actors, so that the rest has time for its own.
	partNodeTimeout = 5 * time.Second
)

// part serves the CSI driver of persistent volumes of a kind, beside that of inline volumes. It starts behind everything
// else and in a goroutine of its own: inline volumes wait for nothing here, and what fails here does not end the daemon. It
// is tried again instead.
type part struct {
	kind partKind
	o    options
	i    *instance
	// what says which volumes, flag is that of the endpoint.
	what, flag, endpoint string
	log                  logr.Logger
	// node is set once it takes calls, registrar while the driver is registered.
	node      atomic.Pointer[partNode]
	registrar atomic.Pointer[kubelet.Registrar]
}

// partKind is what a part does in its own way.
type partKind interface {
	// open starts the actors.
	open() (partNode, error)
	// driver describes the driver, and how it is registered.
	driver() (persistent.Config, kubelet.RegistrarConfig)
	// around calls serve, which returns when ctx ends, and does what goes on beside it.
	around(ctx context.Context, serve func())
	// close undoes what open has done besides. The actors have stopped, or were never started.
	close()
}

// partNode is the front of a part's actors.
type partNode interface {
	persistent.Volumes
	Failed() <-chan error
	Ready(ctx context.Context) error
	Stop(ctx context.Context) error
}

// parts are those that this daemon has.
func (i *instance) parts() []*part {
	var all []*part
	if a := i.arrays.Load(); a != nil {
		all = append(all, a.part)
	}
	if l := i.locals.Load(); l != nil {
		all = append(all, l.part)
	}
	return all
}

// begin starts the part. It does not wait for it.
func (p *part) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	p.i.onStop(func(ctx context.Context) error {
		cancel()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop serving %s: %w", p.what, ctx.Err())
		}
	})
	go func() {
		defer close(ended)
		p.live(ctx)
	}()
}

// live serves until ctx ends, and stops what it has started. Mounts and sessions stay: pods use them.
func (p *part) live(ctx context.Context) {
	defer p.kind.close()
	p.retry(ctx, p.start)
	if !p.started() {
		return
	}
	p.kind.around(ctx, func() { p.retry(ctx, p.serve) })
	ctx, cancel := context.WithTimeout(context.Background(), partNodeTimeout)
	defer cancel()
	if err := (*p.node.Load()).Stop(ctx); err != nil {
		p.log.Info("stopped "+p.what+"; the next start goes on with what has not ended", logkeys.Cause, err.Error())
	}
}

// start starts the actors.
func (p *part) start(ctx context.Context) error {
	n, err := p.kind.open()
	if err != nil {
		return err
	}
	p.node.Store(&n)
	go func() {
		select {
		case <-ctx.Done():
		case err := <-n.Failed():
			// What the actors were doing may still run. Only a new process knows that nothing does.
			p.i.failed <- fmt.Errorf("%s: %w", p.what, err)
		}
	}()
	return nil
}

// started reports whether the actors take calls.
func (p *part) started() bool { return p.node.Load() != nil }

// healthy returns nil while the actors answer. An array, an API server or a disk that is away makes no difference.
func (p *part) healthy(ctx context.Context) error {
	if !p.started() {
		return nil
	}
	if err := (*p.node.Load()).Ready(ctx); err != nil {
		return fmt.Errorf("the actors of the %s do not answer: %w", p.what, err)
	}
	return nil
}

// retry calls run until it returns nil or ctx ends. Each cause of a failure is logged once.
func (p *part) retry(ctx context.Context, run func(context.Context) error) {
	reported := ""
	for ctx.Err() == nil {
		err := run(ctx)
		if err == nil {
			return
		}
		if err.Error() != reported {
			reported = err.Error()
			p.log.Error(err, p.what+" are not served, trying again until they are", logkeys.Interval, duration.Format(partInterval))
		}
		select {
		case <-ctx.Done():
		case <-time.After(partInterval):
		}
	}
}

// serve serves and keeps the driver registered, until ctx ends or the socket is lost.
func (p *part) serve(ctx context.Context) error {
	config, registration := p.kind.driver()
	config.Version, config.NodeID, config.KubeletDir = version, p.o.nodeID, p.o.kubeletDir
	config.Volumes, config.Log, config.Trace = *p.node.Load(), p.log, p.i.traces.Calls()
	d, err := persistent.New(config)
	if err != nil {
		return err
	}
	path, err := socket.Path(p.endpoint)
	if err != nil {
		return err
	}
	l, err := socket.Listen(path)
	if err != nil {
		return fmt.Errorf("%s: %w", p.flag, err)
	}
	server := persistent.NewServer(d)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), partCallsTimeout)
		defer cancel()
		if broken := server.Stop(ctx); broken != nil {
			p.log.Info("stopped serving "+p.what, logkeys.Cause, broken.Error())
		}
	}()
	if registration.Dir != "" {
		registration.Log = p.log
		registrar, err := kubelet.Register(registration)
		if err != nil {
			return fmt.Errorf("--registration-dir: %w", err)
		}
		p.registrar.Store(registrar)
		defer func() {
			p.registrar.Store(nil)
			registrar.Stop()
		}()
	}
	p.log.Info("ready", "endpoint", p.endpoint)
	lost := make(chan error, 1)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { lost <- l.Lost(watching, socketInterval) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", path, err)
	case err := <-lost:
		return err
	}
}
