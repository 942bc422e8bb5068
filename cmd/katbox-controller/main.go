// Command katbox-controller makes persistent volumes on remote arrays and on the disks of nodes: the CSI controller of
// array.csi.katbox.io and of local.csi.katbox.io. It runs in one pod with the usual CSI sidecars, and keeps all that it knows in
// custom resources. Of several replicas the leader serves.
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
const programName = "katbox-controller"

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
	return run(ctx, o, stdout)
}
