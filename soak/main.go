package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
)

// The exit codes.
const (
	exitProven   = 0
	exitViolated = 1 // or the run could not come to its end
	exitUsage    = 2
)

func main() {
	// A slow disk needs this program again, in another part.
	host.RunHelper()

	code, err := start()
	switch {
	case errors.Is(err, pflag.ErrHelp):
		code = exitProven
	case isUsage(err):
		fmt.Fprintln(os.Stderr, "soak:", err)
		code = exitUsage
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		code = exitViolated
	}
	os.Exit(code)
}

// start checks the command line, moves into a mount namespace and runs there.
func start() (int, error) {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		return 0, err
	}
	if o.dryRun {
		return exitProven, printPlan(os.Stdout, o.plan())
	}
	if _, err := o.binary(); err != nil {
		return 0, err
	}
	if !host.Inside() {
		return host.Enter()
	}
	if err := host.Privatise(); err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	violations, err := run(ctx, o, os.Stdout)
	if violations > 0 {
		return exitViolated, err
	}
	return exitProven, err
}
