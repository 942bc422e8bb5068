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
	exitProven   = 0
	exitViolated = 1
	exitUnproven = 2 // wrong usage, or it could not be checked
)

func main() {
	code, err := play()
	if errors.Is(err, pflag.ErrHelp) {
		err = nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "powercut:", err)
		code = exitUnproven
	}
	os.Exit(code)
}

func play() (int, error) {
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		return exitUnproven, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if o.half == "run" {
		return exitProven, run(ctx, o, os.Stdout)
	}
	violations, err := check(ctx, o, os.Stdout)
	if violations > 0 {
		return exitViolated, err
	}
	return exitProven, err
}
