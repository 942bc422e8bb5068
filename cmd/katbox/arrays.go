package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/internal/node/csi/persistent"
	"github.com/katbox/katbox/internal/node/poolnode"
)

// arrayPart is the part of the daemon that serves volumes of arrays. A nil one stands for a daemon without this part.
type arrayPart struct {
	*part
	records *staged.Staged
	keeper  *poolnode.Keeper
}

// serveArrays starts the part that serves volumes of arrays, if there is one. It does not wait for it.
func (i *instance) serveArrays(context.Context) error {
	if !i.o.arrays.serves() {
		return nil
	}
	a := &arrayPart{part: &part{
		o: i.o, i: i, what: "volumes of arrays", flag: "--array-endpoint", endpoint: i.o.arrays.endpoint, log: i.log.WithName("arrays"),
	}}
	a.kind = a
	i.counted.ArraysServed()
	if i.o.registrationDir != "" {
		i.counted.ArrayRegistered(false)
	}
	i.arrays.Store(a)
	a.begin()
	return nil
}

// open takes over what earlier daemons have staged. Nothing in it asks an array or the API server.
func (a *arrayPart) open() (_ partNode, err error) {
	if a.records == nil {
		if a.records, err = a.openRecords(); err != nil {
			return nil, err
		}
	}
	return a.newNode()
}

// openRecords opens the records of the staged volumes.
func (a *arrayPart) openRecords() (*staged.Staged, error) {
	path, err := socket.Path(a.o.arrays.endpoint)
	if err != nil {
		return nil, err
	}
	return staged.Open(filepath.Join(filepath.Dir(path), stagedDir), a.log)
}

// driver describes the driver of the arrays.
func (a *arrayPart) driver() (persistent.Config, kubelet.RegistrarConfig) {
	registration := a.o.arrays.registrarConfig(a.o)
	registration.Registered = a.i.counted.ArrayRegistered
	return persistent.Config{
		Kind: pools.KindArray, Name: a.o.arrays.driverName, MaxVolumes: a.o.arrays.maxVolumes,
		Count: func(method string) edge.Calls { return a.i.counted.ArrayMethod(method) },
	}, registration
}

// around serves.
func (a *arrayPart) around(_ context.Context, serve func()) { serve() }

// close ends what newNode and openRecords have begun.
func (a *arrayPart) close() {
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
	case !a.started():
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

// threads returns how many of the process' threads the volumes of arrays may count on; 0 sets no limit. A
// call that waits for a dead server keeps a thread, and inline volumes need some too.
func (o arrayOptions) threads(all int) int {
	if !o.serves() {
		return 0
	}
	return all / 3
}
