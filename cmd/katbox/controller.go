package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/node/uplink"
)

// disconnectTimeout bounds how long requests of the controller may go on when the daemon stops. It repeats them.
const disconnectTimeout = 2 * time.Second

// controllerOptions are the flags of the way to the controller, which makes volumes on the node's disks.
type controllerOptions struct{ address, ca, token string }

func (o *controllerOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "controller", "",
		"HOST:PORT where katbox-controller takes the connections of nodes, several separated by commas; the node connects to each address "+
			"of HOST; without it no volumes are made in the directories of --local-pool")
	flags.StringVar(&o.ca, "controller-ca", "/var/run/katbox-controller/ca.crt",
		"file with the certificates of the CA that signs the controller's; it is read for each connection, and may appear later")
	flags.StringVar(&o.token, "controller-token", "/var/run/katbox-controller/token",
		"file with the projected token of the pod's ServiceAccount for the audience katbox-controller; it is read for each connection")
}

// check returns the first of these flags that is not acceptable, and why.
func (o controllerOptions) check(local bool) error {
	switch {
	case o.address == "":
		return nil
	case !local:
		return errors.New("--controller is of no use without --local-pool: it makes volumes in these")
	case !filepath.IsAbs(o.ca):
		return fmt.Errorf("--controller-ca %q is not an absolute path", o.ca)
	case !filepath.IsAbs(o.token):
		return fmt.Errorf("--controller-token %q is not an absolute path", o.token)
	}
	if err := uplink.CheckTarget(o.address); err != nil {
		return fmt.Errorf("--controller: %w", err)
	}
	return nil
}

// connect connects to the controller, if there is one. It does not wait for that: volumes that there are need it for
// nothing.
func (l *locals) connect() error {
	o := l.o.local.controller
	if o.address == "" {
		return nil
	}
	u, err := uplink.Start(uplink.Config{
		Controller: o.address, CAFile: o.ca, TokenFile: o.token, Node: l.o.nodeID, Version: version, Pools: l.pools,
		Metrics: l.i.counted, Log: l.log,
	})
	if err != nil {
		return fmt.Errorf("--controller: %w", err)
	}
	l.uplink.Store(u)
	return nil
}

// disconnect ends the connections to the controller.
func (l *locals) disconnect() {
	u := l.uplink.Load()
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), disconnectTimeout)
	defer cancel()
	if err := u.Stop(ctx); err != nil {
		l.log.Info("disconnected from the controller, which asks again", logkeys.Cause, err.Error())
	}
}

// reportController writes how it stands with each replica of the controller.
func (i *instance) reportController(_ context.Context, w io.Writer) error {
	l := i.locals.Load()
	switch {
	case l == nil || l.o.local.controller.address == "":
		_, err := fmt.Fprintln(w, "no --controller is given")
		return err
	case l.uplink.Load() == nil:
		_, err := fmt.Fprintln(w, "the volumes on the node's disks are not served yet")
		return err
	}
	reportStates(w, l.uplink.Load().States())
	return nil
}
