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
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// The other parts that this program plays, by its first argument.
const (
	partFloor = "floor" // the bare server
	partApart = "apart" // runs a command in a mount namespace of its own
)

func main() {
	err := play(os.Args[1:])
	code := exitDone
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, errUsage), errors.Is(err, host.ErrUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = exitUsage
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = exitFailed
	}
	os.Exit(code)
}

func play(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case partFloor:
			return serveFloor(args[1:])
		case partApart:
			return runApart(args[1:])
		}
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if !host.Inside() {
		code, err := host.Enter()
		if err == nil && code != exitDone {
			os.Exit(code) // it has said why
		}
		return err
	}
	if err := host.Privatise(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	return run(ctx, o, os.Stdout, os.Stderr)
}
