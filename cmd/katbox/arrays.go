package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/actors/arrays"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/internal/node/csi/persistent"
	"github.com/katbox/katbox/internal/node/poolnode"
)

// arrayNodeTimeout bounds the stop of that part, so that the rest has time for its own.
const arrayNodeTimeout = 5 * time.Second

// arrayPart is the part of the daemon that serves volumes of arrays. It starts behind everything else and
// in a goroutine of its own: inline volumes wait for nothing here, and what fails here does not end the
// daemon. It is tried again instead. A nil one stands for a daemon without this part.
type arrayPart struct {
	o       options
	i       *instance
	log     logr.Logger
	records *staged.Staged
	keeper  *poolnode.Keeper
	// node is set once it takes calls, registrar while the driver is registered.
	node      atomic.Pointer[arrays.Node]
	registrar atomic.Pointer[kubelet.Registrar]
}

// serveArrays starts the part that serves volumes of arrays, if there is one. It does not wait for it.
func (i *instance) serveArrays(context.Context) error {
	if !i.o.arrays.serves() {
		return nil
	}
	a := &arrayPart{o: i.o, i: i, log: i.log.WithName("arrays")}
	i.counted.ArraysServed()
	if i.o.registrationDir != "" {
		i.counted.ArrayRegistered(false)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	i.onStop(func(ctx context.Context) error {
		cancel()
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop serving volumes of arrays: %w", ctx.Err())
		}
	})
	i.arrays.Store(a)
	go func() {
		defer close(ended)
		a.live(ctx)
	}()
	return nil
}

// live serves until ctx ends, and stops what it has started.
func (a *arrayPart) live(ctx context.Context) {
	a.part().retry(ctx, a.startNode)
	if a.node.Load() != nil {
		a.part().retry(ctx, a.serve)
	}
	a.stop()
}

// startNode takes over what earlier daemons have staged. Nothing in it asks an array or the API server.
func (a *arrayPart) startNode(ctx context.Context) (err error) {
	if a.records == nil {
		if a.records, err = a.openRecords(); err != nil {
			return err
		}
	}
	n, err := a.newNode()
	if err != nil {
		return err
	}
	a.node.Store(n)
	go func() {
		select {
		case <-ctx.Done():
		case err := <-n.Failed():
			// What the actors were doing may still run. Only a new process knows that nothing does.
			a.i.failed <- fmt.Errorf("volumes of arrays: %w", err)
		}
	}()
	return nil
}

// openRecords opens the records of the staged volumes.
func (a *arrayPart) openRecords() (*staged.Staged, error) {
	path, err := socket.Path(a.o.arrays.endpoint)
	if err != nil {
		return nil, err
	}
	return staged.Open(filepath.Join(filepath.Dir(path), stagedDir), a.log)
}

// serve serves and keeps the driver registered, until ctx ends or the socket is lost.
func (a *arrayPart) serve(ctx context.Context) error {
	d, err := persistent.New(persistent.Config{
		Kind: pools.KindArray, Name: a.o.arrays.driverName, Version: version, NodeID: a.o.nodeID, KubeletDir: a.o.kubeletDir,
		MaxVolumes: a.o.arrays.maxVolumes, Volumes: a.node.Load(), Log: a.log, Trace: a.i.traces.Calls(),
		Count: func(method string) edge.Calls { return a.i.counted.ArrayMethod(method) },
	})
	if err != nil {
		return err
	}
	registration := a.o.arrays.registrarConfig(a.o)
	registration.Registered = a.i.counted.ArrayRegistered
	return a.part().serve(ctx, d, registration)
}

// part is what serves the driver.
func (a *arrayPart) part() *part {
	return &part{what: "volumes of arrays", flag: "--array-endpoint", endpoint: a.o.arrays.endpoint, log: a.log, registrar: &a.registrar}
}

// stop stops what startNode has started. Mounts and sessions stay: pods use them.
func (a *arrayPart) stop() {
	if n := a.node.Load(); n != nil {
		ctx, cancel := context.WithTimeout(context.Background(), arrayNodeTimeout)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			a.log.Info("stopped volumes of arrays; the next start goes on with what has not ended", logkeys.Cause, err.Error())
		}
	}
	if a.keeper != nil {
		a.keeper.Stop()
	}
	if a.records != nil {
		if err := a.records.Close(); err != nil {
			a.log.Error(err, "close the records of staged volumes")
		}
	}
}

// reportArrays writes which volumes of arrays are staged, as far as the records say.
func (i *instance) reportArrays(_ context.Context, w io.Writer) error {
	a := i.arrays.Load()
	switch {
	case a == nil:
		_, err := fmt.Fprintln(w, "not served: there is no --array-endpoint")
		return err
	case a.node.Load() == nil:
		return errors.New("not served yet; the log says why")
	}
	if err := a.registrar.Load().Registered(); err != nil {
		fmt.Fprintf(w, "kubelet   %s\n", volume.OneLine(err))
	}
	records, err := a.records.All()
	if err != nil {
		return err
	}
	for _, r := range records[:min(len(records), mostReported)] {
		fmt.Fprintf(w, "%s %q block=%t readOnly=%t %s %q %q lun=%d\n", r.Volume, r.Path, r.Block, r.ReadOnly, r.Attachment.Protocol,
			r.Attachment.Export+r.Attachment.Target, r.Attachment.Portal, r.Attachment.LUN)
	}
	return more(w, len(records))
}

// healthy returns nil while the actors answer. An array or an API server that is away makes no
// difference.
func (a *arrayPart) healthy(ctx context.Context) error {
	if a == nil || a.node.Load() == nil {
		return nil
	}
	if err := a.node.Load().Ready(ctx); err != nil {
		return fmt.Errorf("the actors of the volumes of arrays do not answer: %w", err)
	}
	return nil
}

// threads returns how many of the process' threads the volumes of arrays may count on; 0 sets no limit. A
// call that waits for a dead server keeps a thread, and inline volumes need some too.
func (o arrayOptions) threads(all int) int {
	if !o.serves() {
		return 0
	}
	return all / 3
}
