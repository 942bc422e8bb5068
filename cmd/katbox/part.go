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
)

// part serves the CSI driver of persistent volumes of a kind, beside that of inline volumes. What fails here does not
// end the daemon: it is tried again.
type part struct {
	// what says which volumes, flag is that of the endpoint.
	what, flag, endpoint string
	log                  logr.Logger
	// registrar is set while the driver is registered.
	registrar *atomic.Pointer[kubelet.Registrar]
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
func (p *part) serve(ctx context.Context, d *persistent.Driver, registration kubelet.RegistrarConfig) error {
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
