package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell says it of SIGINT
)

// errInterrupted ends the demo because a signal came.
var errInterrupted = errors.New("interrupted; everything is cleaned up")

// interrupts end the demo. SIGPIPE says that the reader of the output went away, SIGHUP that the terminal did.
var interrupts = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE}

func main() {
	code, err := start(os.Args[1:])
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, errUsage), errors.Is(err, host.ErrUsage):
		code = exitUsage
	case errors.Is(err, errInterrupted):
		code = exitInterrupted
	default:
		code = exitFailed
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

// start checks the command line, moves into a mount namespace and runs there. The
// code is that of the process in the namespace, which has said what went wrong.
func start(args []string) (code int, err error) {
	o, err := parseOptions(args)
	if err != nil {
		return 0, err
	}
	if o.readme != "" {
		if err := checkReadme(o.readme); err != nil {
			return 0, err
		}
	}
	binary, err := o.binary()
	if err != nil {
		return 0, err
	}
	if !host.Inside() {
		return host.Enter()
	}
	if err := host.Privatise(); err != nil {
		return 0, err
	}
	// Once a signal came, further ones wait for the cleaning.
	ctx, stop := signal.NotifyContext(context.Background(), interrupts...)
	defer stop()
	return exitDone, run(ctx, o, binary)
}

// run plays the story and takes everything away again.
func run(ctx context.Context, o options, binary string) error {
	t := &transcript{out: os.Stdout}
	n, err := newNode(binary, o.lifespan)
	if err != nil {
		return err
	}
	alive, died := context.WithCancelCause(ctx)
	defer died(nil)
	go func() {
		select {
		case err := <-n.driver.Died():
			died(err)
		case <-alive.Done():
		}
	}()
	err = n.tell(alive, t)
	if ctx.Err() != nil || isInterrupted(err) {
		err = errInterrupted
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		err = fmt.Errorf("%w%s", err, n.complaints())
	}
	if err := errors.Join(err, n.tearDown()); err != nil || o.readme == "" {
		return err
	}
	return t.writeReadme(o.readme)
}

// isInterrupted reports whether a program of the demo was ended by such a signal. What a terminal sends reaches all
// processes of its group, and so also one that has not got a group of its own yet, perhaps before this one.
func isInterrupted(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains(interrupts, os.Signal(status.Signal()))
}
