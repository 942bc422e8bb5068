// Command katbox-gateway is the cluster's entrance to retained volumes: an aggregated API server of the
// group katbox.io. The node daemons open connections to it, and it asks them over these. Two replicas
// run in a cluster, without a leader.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/volume"
)

// The build sets version, and revision to the commit.
var (
	version  = "dev"
	revision = ""
)

const (
	// hardLimit is how long the gateway may live after a signal: Kubernetes kills it after 30 s.
	hardLimit = 25 * time.Second
	// logTimeout bounds the wait for the reader of stdout or stderr at the end.
	logTimeout = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, func() {
		time.Sleep(hardLimit)
		os.Exit(exitCode(fmt.Errorf("did not stop within %s of the signal, giving up", hardLimit), os.Stderr))
	})
	os.Exit(exitCode(realMain(ctx, os.Args[1:], os.Stdout), os.Stderr))
}

// realMain is the whole program: it returns nil after a signal.
func realMain(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if o.showVersion {
		_, err := fmt.Fprintf(stdout, "katbox-gateway %s\n", version)
		return err
	}
	return run(ctx, o, stdout)
}

// exitCode writes to stderr, in one line, why the gateway ended.
func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		fmt.Fprintf(stderr, "katbox-gateway: %v\n", volume.OneLine(err))
	}()
	select {
	case <-written:
	case <-time.After(logTimeout): // the reader of stderr stalls
	}
	return 1
}
