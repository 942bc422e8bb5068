package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/katbox/katbox/internal/node/handlers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/uplink"
	"github.com/katbox/katbox/soak/internal/launch"
)

// play plays the nodes until in ends, or ctx.
func play(ctx context.Context, in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	var p part
	if err := orders.Decode(&p); err != nil {
		return err
	}
	var silent, searches atomic.Int64
	log := logr.Discard()
	if p.Verbose {
		log = funcr.New(func(_, line string) { fmt.Fprintln(os.Stderr, "node:", line) }, funcr.Options{})
	}
	for i := p.First; i < p.First+p.Nodes; i++ {
		if err := p.connect(i, log.WithValues("node", nodeName(i)), &silent, &searches); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { os.Exit(launch.Failed) })()
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil // the connections end with the process
		} else if err != nil {
			return err
		}
		if o.Searches {
			fmt.Fprintln(out, searches.Load())
			continue
		}
		silent.Store(int64(o.Silent))
		fmt.Fprintln(out, "done")
	}
}

// connect lets a node connect.
func (p part) connect(i int, log logr.Logger, silent, searches *atomic.Int64) error {
	counted := metrics.New("fleet", "")
	volumes := makeUp(i, p)
	handler, err := handlers.NewHandler(handlers.Config{
		Volumes: volumes, Node: nodeName(i), Gateway: true, Log: logr.Discard(), Metrics: counted,
		Space:       func() (volume.Space, error) { return volume.Space{}, errNoFiles },
		LowPriority: func() func() { return func() {} },
		Report:      func(context.Context, io.Writer) error { return errNoFiles },
	})
	if err != nil {
		return err
	}
	_, err = uplink.Start(uplink.Config{
		Gateway: p.Gateway, CAFile: p.CAFile, TokenFile: filepath.Join(p.Tokens, nodeName(i)), Node: nodeName(i), Version: "fleet",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if int64(i) < silent.Load() && strings.HasPrefix(r.URL.Path, api.VolumesPath) {
				<-r.Context().Done()
				return
			}
			if r.URL.Path == api.GrepPath {
				searches.Add(1)
				defer searches.Add(-1)
			}
			handler.ServeHTTP(w, r)
		}),
		Volumes: volumes, Metrics: counted, Log: log, From: addressOf(i),
	})
	return err
}

// addressOf returns a node's own address: a gateway limits the connections that come from one. An address of the loopback reaches all
// addresses of this machine.
func addressOf(node int) net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(node>>8), byte(node))}
}
