package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// The exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// partPlay is the first argument of the process that plays the nodes.
const partPlay = "play"

func main() {
	switch err := run(os.Args[1:]); {
	case err == nil, errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(exitFailed)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if len(args) == 1 && args[0] == partPlay {
		return play(ctx, os.Stdin, os.Stdout)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	return tell(ctx, o, os.Stdout)
}
