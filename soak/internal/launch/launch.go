// Package launch is how the programs of the soak begin and end: their flags, seeds, signals and exit codes, and the
// daemon that they play with.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// The exit codes.
const (
	Done        = 0
	Failed      = 1 // something was found that must not be, or the program could not come to its end
	Usage       = 2
	Interrupted = 130 // as a shell says it of SIGINT
)

// ErrUsage marks what only another command line can mend.
var ErrUsage = errors.New("wrong usage")

// Exit ends a program with this code. All that is to be said has been said.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Interrupts end a program in order. SIGHUP says that the terminal went away.
var Interrupts = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP}

// Main runs a program until it has ended, and then its process. One of [Interrupts] ends ctx, unless the process began
// with that ignored, as below nohup; further ones wait for what the program does then.
func Main(name string, play func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), slices.DeleteFunc(slices.Clone(Interrupts), signal.Ignored)...)
	defer stop()
	End(name, play(ctx, os.Args[1:]))
}

// End says on standard error what a program failed at, if it did, and ends the process.
func End(name string, err error) { os.Exit(code(name, err, os.Stderr)) }

func code(name string, err error, out io.Writer) int {
	var exit Exit
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return Done
	case errors.As(err, &exit):
		return int(exit)
	}
	fmt.Fprintf(out, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return Usage
	}
	return Failed
}
