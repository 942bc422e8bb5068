package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/launch"
)

func main() {
	becomeContainer()
	launch.Main("arrays", func(ctx context.Context, args []string) error {
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		return play(ctx, o, os.Stdout)
	})
}
