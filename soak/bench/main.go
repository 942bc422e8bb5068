package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
)

// The other parts that this program plays, by its first argument.
const (
	partFloor = "floor" // the bare server
	partApart = "apart" // runs a command in a mount namespace of its own
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case partFloor:
			launch.End("bench", serveFloor(os.Args[2:]))
		case partApart:
			launch.End("bench", runApart(os.Args[2:]))
		}
	}
	launch.Main("bench", func(ctx context.Context, args []string) error {
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		if inside, err := host.Enter(); !inside || err != nil {
			return err
		}
		return run(ctx, o, os.Stdout, os.Stderr)
	})
}
