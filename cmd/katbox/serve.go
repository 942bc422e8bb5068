package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors/ephemeral"
	"github.com/katbox/katbox/internal/driver"
	"github.com/katbox/katbox/internal/duration"
	"github.com/katbox/katbox/internal/metrics"
	"github.com/katbox/katbox/internal/ops"
	"github.com/katbox/katbox/internal/registration"
	"github.com/katbox/katbox/internal/socket"
)

const (
	// callsTimeout bounds how long running calls are waited for at the end,
	// stopTimeout how long the whole ordered stop may take.
	callsTimeout = 10 * time.Second
	stopTimeout  = 20 * time.Second
	// lookInterval is how often the CSI socket is looked for.
	lookInterval = 5 * time.Second
	// roomInterval is how often it is tried to make a socket on a full disk.
	roomInterval = time.Second
)

// serve answers calls until ctx ends or something gives up.
func serve(ctx context.Context, o options, cfg driver.Config, node *ephemeral.Node, status *ops.Server, log logr.Logger) error {
	var server *driver.Server
	var failed <-chan error
	var registrar *registration.Registrar
	err := withRoom(ctx, node, log, func() (err error) {
		server, failed, err = listen(ctx, o, cfg, log)
		return err
	})
	if err == nil {
		err = withRoom(ctx, node, log, func() (err error) {
			registrar, err = register(o, cfg.Metrics, log)
			return err
		})
	}
	if err == nil {
		status.Serving(func() error {
			if err := node.SeesPods(); err != nil {
				return err
			}
			return registrar.Registered()
		})
		select {
		case <-ctx.Done():
			log.Info("stopping")
		case err = <-node.Failed():
		case err = <-failed:
		case err = <-status.Failed():
		}
	}
	status.Stopping()
	registrar.Stop()

	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if server != nil {
		calls, cancelCalls := context.WithTimeout(stopping, callsTimeout)
		defer cancelCalls()
		if broken := server.Stop(calls); broken != nil {
			// The kubelet repeats them; what they began goes on below.
			log.Info("stopped serving", "cause", broken.Error())
		}
	}
	if broken := node.Stop(stopping); broken != nil {
		err = errors.Join(err, fmt.Errorf("stop: %w", broken))
	}
	log.Info("stopped")
	return err
}

// withRoom opens a socket, as soon as there is room for its file: the node makes
// some meanwhile, which it could not if the daemon ended. When ctx ends before, or
// has ended already, nothing is opened.
func withRoom(ctx context.Context, node *ephemeral.Node, log logr.Logger, open func() error) error {
	told := false
	for ctx.Err() == nil {
		err := open()
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			return err
		}
		if !told {
			told = true
			log.Error(err, "no room for a socket, waiting until there is some", "interval", duration.Format(roomInterval))
		}
		select {
		case <-ctx.Done():
		case err := <-node.Failed():
			return err
		case <-time.After(roomInterval):
		}
	}
	return nil
}

// listen opens the socket and serves on it. The channel delivers the reason
// when serving fails, or nobody can find the socket any more: a daemon that is
// started again makes it anew.
func listen(ctx context.Context, o options, cfg driver.Config, log logr.Logger) (*driver.Server, <-chan error, error) {
	d, err := driver.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	path, err := socket.Path(o.endpoint)
	if err != nil {
		return nil, nil, err
	}
	l, err := socket.Listen(path)
	if err != nil {
		return nil, nil, fmt.Errorf("--endpoint: %w", err)
	}
	server := driver.NewServer(d)
	failed := make(chan error, 2)
	go func() {
		if err := server.Serve(l); err != nil {
			failed <- fmt.Errorf("serve on %s: %w", path, err)
		}
	}()
	go func() {
		if err := l.Lost(ctx, lookInterval); err != nil {
			failed <- fmt.Errorf("--endpoint: %w", err)
		}
	}()
	log.Info("ready", "endpoint", o.endpoint)
	return server, failed, nil
}

// register has the kubelet know the driver, which has to be served already, if
// that is wanted.
func register(o options, counted *metrics.Metrics, log logr.Logger) (*registration.Registrar, error) {
	if o.registrationDir == "" {
		return nil, nil
	}
	cfg := o.registrationConfig()
	cfg.Log, cfg.Metrics = log, counted
	return registration.Start(cfg)
}
