package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/launch"
)

// partPlay is the first argument of the process that plays the nodes.
const partPlay = "play"

func main() {
	launch.Main("fleet", func(ctx context.Context, args []string) error {
		if len(args) == 1 && args[0] == partPlay {
			return play(ctx, os.Stdin, os.Stdout)
		}
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		return tell(ctx, o, os.Stdout)
	})
}
