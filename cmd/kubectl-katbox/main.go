// Command kubectl-katbox is the plugin of kubectl for retained volumes: kubectl katbox list. It asks the
// Kubernetes API with the user's own credentials, in the same way as kubectl.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 incomplete (with --strict), 4 no such volume or it
// expired, 130 interrupted, 141 the reader of the output went away. Those of grep are those of grep(1).
package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // for users whose kubeconfig names one of them

	"github.com/katbox/katbox/internal/cli/verbs"
)

// The build sets version, and revision to the commit.
var (
	version  = "dev"
	revision = ""
)

// pluginName is what a user of kubectl types. Examples have it.
const pluginName = "kubectl katbox"

func main() {
	ctx, stop := verbs.UntilSignal(context.Background())
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program. args begin with the name that it was called by.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root, args := program(args[0]), args[1:]
	if len(args) > 0 {
		switch args[0] {
		case cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return complete(ctx, args[1:], stdout)
		case candidatesVerb:
			return candidates(ctx, root, args[1:], stdout)
		case "--version":
			args = append([]string{"version", "--client"}, args[1:]...)
		}
	}
	return verbs.Run(ctx, root, args, stdin, stdout, stderr)
}

// program returns the command line. called is the name of the executable.
func program(called string) *cobra.Command {
	name, conn := programName(called), newConnection()
	all := []*cobra.Command{
		listVerb(conn), lsVerb(conn), catVerb(conn), tailVerb(conn), logsVerb(conn), grepVerb(conn), describeVerb(conn), statVerb(conn),
		cpVerb(conn), pinVerb(conn), unpinVerb(conn), releaseVerb(conn), rmVerb(conn), debugVerb(conn), uiVerb(conn), checkVerb(conn),
		completionVerb(), versionVerb(conn),
	}
	for _, verb := range all {
		verb.Long, verb.Example = strings.ReplaceAll(verb.Long, pluginName, name), strings.ReplaceAll(verb.Example, pluginName, name)
	}
	root := verbs.Program{
		Executable: "kubectl-katbox", Name: name,
		About:   name + " VERB finds and reads what pods have left behind, as long as Katbox keeps it:",
		More:    name + " VERB --help shows more. The connection flags of kubectl work too: kubectl options lists them.",
		Targets: targetNotes,
		Verbs:   all,
	}.Command()
	root.PersistentFlags().AddFlagSet(conn.flags)
	conn.completeFlags(root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(verb *cobra.Command, args []string) {
		conn.hideRare()
		help(verb, args)
	})
	return root
}

// programName is what a user types: "kubectl katbox" if the program was called as a plugin.
func programName(called string) string {
	// A path of Windows has backslashes, and this may run on another system's names in tests.
	name := strings.TrimSuffix(filepath.Base(called), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return name
}
