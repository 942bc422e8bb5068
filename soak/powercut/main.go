package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/launch"
)

func main() {
	launch.Main("powercut", func(ctx context.Context, args []string) error {
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		if o.half == "run" {
			return run(ctx, o, os.Stdout)
		}
		violations, err := check(ctx, o, os.Stdout)
		if err == nil && violations > 0 {
			return launch.Exit(launch.Failed)
		}
		return err
	})
}
