// Package program is how a long-running program of Katbox begins and ends: it reads its flags, runs until
// a signal, and one line on stderr says why it ended otherwise.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// hardLimit is how long a program may live after a signal: Kubernetes kills it after 30 s.
	hardLimit = 25 * time.Second
	// OutputTimeout bounds the wait for the reader of stdout or stderr at the end.
	OutputTimeout = time.Second
)

// Main runs the program, and ends the process. The context that main gets ends with SIGTERM or SIGINT;
// main then returns nil. If it does not return in time, the process ends all the same.
func Main(name string, main func(ctx context.Context, args []string, stdout io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// If a system call hangs, the ordered stop does not end. All durable state is on disk by then.
	context.AfterFunc(ctx, func() {
		time.Sleep(hardLimit)
		os.Exit(ExitCode(name, fmt.Errorf("did not stop within %s of the signal, giving up", hardLimit), os.Stderr))
	})
	os.Exit(ExitCode(name, main(ctx, os.Args[1:], os.Stdout), os.Stderr))
}

// ExitCode writes to stderr, in one line, why the program ended, and returns its exit code.
func ExitCode(name string, err error, stderr io.Writer) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		fmt.Fprintf(stderr, "%s: %v\n", name, volume.OneLine(err))
	}()
	select {
	case <-written:
	case <-time.After(OutputTimeout): // the reader of stderr stalls
	}
	return 1
}

// Parse reads the command line. A program takes flags alone.
func Parse(name string, flags *pflag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w; see %s --help", err, name)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see %s --help", flags.Arg(0), name)
	}
	return nil
}

// PrintVersion writes what a program says to --version. The build gives it both texts; revision is the
// commit, and empty if the build knew none.
func PrintVersion(w io.Writer, name, version, revision string) error {
	commit := "unknown commit"
	if revision != "" {
		commit = "commit " + revision[:min(len(revision), 12)]
	}
	_, err := fmt.Fprintf(w, "%s %s (%s)\n", name, version, commit)
	return err
}
