// Command katbox is the Katbox daemon: a CSI node driver for ephemeral inline volumes whose data
// outlives the pod for a lifespan. One runs on each node. With a verb as its first argument it is
// the command line for people, which asks the daemon: katbox ls.
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

	"github.com/katbox/katbox/cmd/katbox/verbs"
	"github.com/katbox/katbox/internal/volume"
)

// The build sets version, and revision to the commit.
var (
	version  = "dev"
	revision = ""
)

// hardLimit is how long the daemon may live after a signal: Kubernetes kills it after 30 s.
const hardLimit = 25 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if args := os.Args[1:]; verbs.Asked(args) {
		os.Exit(verbs.Run(ctx, args, os.Stdin, os.Stdout, os.Stderr))
	}
	// If a system call hangs, the ordered stop does not end. All durable state is on disk by then.
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
		_, err := fmt.Fprintf(stdout, "katbox %s\n", version)
		return err
	}
	return run(ctx, o, stdout)
}

// exitCode writes to stderr, in one line, why the daemon ended.
func exitCode(err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		fmt.Fprintf(stderr, "katbox: %v\n", volume.OneLine(err))
	}()
	select {
	case <-written:
	case <-time.After(logTimeout): // the reader of stderr stalls
	}
	return 1
}
