// Command katbox is the Katbox daemon: a CSI node driver for ephemeral inline volumes whose data
// outlives the pod for a lifespan. One runs on each node. With a verb as its first argument it is
// the command line for people, which asks the daemon: katbox ls.
package main

import (
	"context"
	"io"
	"os"

	"github.com/katbox/katbox/cmd/katbox/verbs"
	shared "github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/lib/program"
)

// The build sets version, and revision to the commit.
var (
	version  = "dev"
	revision = ""
)

// programName is the program's name in what it prints.
const programName = "katbox"

func main() {
	if args := os.Args[1:]; verbs.Asked(args) {
		ctx, stop := shared.UntilSignal(context.Background())
		defer stop()
		os.Exit(verbs.Run(ctx, args, os.Stdin, os.Stdout, os.Stderr))
	}
	program.Main(programName, realMain)
}

// realMain is the whole program: it returns nil after a signal.
func realMain(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if o.showVersion {
		return program.PrintVersion(stdout, programName, version, revision)
	}
	return run(ctx, o, stdout)
}
