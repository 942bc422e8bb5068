package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/launch"
)

// errInterrupted ends the demo because a signal came.
var errInterrupted = errors.New("interrupted; everything is cleaned up")

// interrupts end it. SIGPIPE says that the reader of the output went away; nothing else here writes to pipes or sockets
// whose reader may.
var interrupts = append(slices.Clone(launch.Interrupts), unix.SIGPIPE)

func main() { launch.Main("demo", start) }

// start checks the command line, moves into a mount namespace and runs there.
func start(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if inside, err := host.Enter(); !inside || err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGPIPE)
	defer stop()
	err = untilTold(o, os.Stderr, func(o options) error { return run(ctx, o) })
	if errors.Is(err, errInterrupted) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return launch.Exit(launch.Interrupted)
	}
	return err
}

// untilTold plays the story, and once more if this machine is too slow for the usual lifespan.
func untilTold(o options, says io.Writer, play func(options) error) error {
	err := play(o)
	if !errors.Is(err, errSlow) || o.lifespan != usualLifespan {
		return err
	}
	fmt.Fprintf(says, "demo: this machine is slow: files expired after %s, before the story was told. It begins again "+
		"with a lifespan of %s;\nits end waits for that.\n", o.lifespan, slowLifespan)
	o.lifespan = slowLifespan
	return play(o)
}

// run plays the story and takes everything away again.
func run(ctx context.Context, o options) error {
	t := &transcript{out: os.Stdout}
	n, err := newNode(o.daemon, o.lifespan)
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
