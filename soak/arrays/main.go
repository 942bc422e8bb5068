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

func main() {
	becomeContainer()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	o, err := parseOptions(os.Args[1:])
	if err == nil {
		err = play(ctx, o, os.Stdout)
	}
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "arrays:", err)
		os.Exit(exitFailed)
	}
}
