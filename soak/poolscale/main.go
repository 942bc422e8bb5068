package main

import (
	"context"
	"os"

	"github.com/katbox/katbox/soak/internal/launch"
)

func main() {
	launch.Main("poolscale", func(ctx context.Context, args []string) error {
		o, err := parseOptions(args)
		if err != nil {
			return err
		}
		return tell(ctx, o, os.Stdout)
	})
}
