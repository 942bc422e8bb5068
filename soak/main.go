package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
)

func main() {
	// A slow disk needs this program again, in another part.
	host.RunHelper()
	launch.Main("soak", start)
}

// start checks the command line, moves into a mount namespace and runs there.
func start(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.dryRun {
		return printPlan(os.Stdout, o.plan())
	}
	if _, err := o.binary(); err != nil {
		return err
	}
	if inside, err := host.Enter(); !inside || err != nil {
		return err
	}
	violations, err := run(ctx, o, os.Stdout)
	if err == nil && violations > 0 {
		return launch.Exit(launch.Failed)
	}
	return err
}
