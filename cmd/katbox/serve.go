package main

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/csi/inline"
)

const (
	// socketInterval is the time between two looks at the CSI socket.
	socketInterval = 5 * time.Second
	// roomInterval is the time between two attempts to make a socket on a full disk.
	roomInterval = time.Second
)

// listen opens the CSI socket and serves on it. The daemon ends when serving fails or the socket is
// removed: started again it makes the socket anew.
func (i *instance) listen(ctx context.Context) error {
	d, err := inline.New(inline.Config{
		Name: i.o.driverName, Version: version, NodeID: i.o.nodeID, KubeletDir: i.o.kubeletDir, MaxVolumes: i.o.maxVolumes,
		Volumes: i.node, Terms: i.promises.Terms, Cut: i.promises.Cut, Log: i.log, Metrics: i.counted, Trace: i.traces.Calls(),
	})
	if err != nil {
		return err
	}
	path, err := socket.Path(i.o.endpoint)
	if err != nil {
		return err
	}
	return i.withRoom(ctx, func() error {
		l, err := socket.Listen(path)
		if err != nil {
			return fmt.Errorf("--endpoint: %w", err)
		}
		server := inline.NewServer(d)
		i.onStop(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, callsTimeout)
			defer cancel()
			if err := server.Stop(ctx); err != nil {
				// The kubelet repeats its calls. Their operations go on until the node stops.
				i.log.Info("stopped serving", logkeys.Cause, err.Error())
			}
			return nil
		})
		go func() {
			if err := server.Serve(l); err != nil {
				i.failed <- fmt.Errorf("serve on %s: %w", path, err)
			}
		}()
		go func() {
			if err := l.Lost(ctx, socketInterval); err != nil {
				i.failed <- fmt.Errorf("--endpoint: %w", err)
			}
		}()
		i.log.Info("ready", "endpoint", i.o.endpoint)
		return nil
	})
}

// register registers the driver with the kubelet, if no sidecar does.
func (i *instance) register(ctx context.Context) error {
	if i.o.registrationDir == "" {
		return nil
	}
	cfg := i.o.registrarConfig()
	cfg.Log, cfg.Registered = i.log, i.counted.Registered
	return i.withRoom(ctx, func() error {
		registrar, err := kubelet.Register(cfg)
		if err != nil {
			return fmt.Errorf("--registration-dir: %w", err)
		}
		i.registrar = registrar
		i.onStop(func(context.Context) error {
			registrar.Stop()
			return nil
		})
		return nil
	})
}

// withRoom opens a socket once there is room for its file. The node makes room meanwhile; it could
// not if the daemon ended. If ctx ends first, nothing is opened.
func (i *instance) withRoom(ctx context.Context, open func() error) error {
	logged := false
	for ctx.Err() == nil {
		err := open()
		if !volume.IsNoSpace(err) {
			return err
		}
		if !logged {
			logged = true
			i.log.Error(err, "no room for a socket, waiting until there is some", logkeys.Interval, duration.Format(roomInterval))
		}
		select {
		case <-ctx.Done():
		case err := <-i.node.Failed():
			return err
		case <-time.After(roomInterval):
		}
	}
	return nil
}
