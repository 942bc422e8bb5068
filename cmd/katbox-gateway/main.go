// Command katbox-gateway is the cluster's entrance to retained volumes: an aggregated API server of the
// group katbox.io. The node daemons open connections to it, and it asks them over these. Two replicas
// run in a cluster, without a leader.
package main

import (
	"context"
	"io"

	"github.com/katbox/katbox/internal/lib/program"
)

// The build sets version, and revision to the commit.
var (
	version  = "dev"
	revision = ""
)

// programName is the program's name in what it prints.
const programName = "katbox-gateway"

func main() { program.Main(programName, realMain) }

// realMain is the whole program: it returns nil after a signal.
func realMain(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if o.showVersion {
		return program.PrintVersion(stdout, programName, version, revision)
	}
	if o.releaseNodes {
		return releaseNodes(ctx, o, stdout)
	}
	return run(ctx, o, stdout)
}
