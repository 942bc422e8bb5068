// Command kubectl-katbox is the plugin of kubectl for retained volumes: kubectl katbox list. It asks the
// Kubernetes API with the user's own credentials, in the same way as kubectl.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 incomplete (with --strict), 4 no such volume or it
// expired, 130 interrupted, 141 the reader of the output went away.
package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
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
	p := program(args[0])
	if args = args[1:]; len(args) > 0 {
		switch args[0] {
		case completeVerb:
			return complete(ctx, args[1:], stdout)
		case candidatesVerb:
			return candidates(ctx, p, args[1:], stdout)
		}
	}
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version", "--client"}, args[1:]...)
	}
	return p.Run(ctx, verbFirst(args), stdin, stdout, stderr)
}

// program returns the command line. called is the name of the executable.
func program(called string) verbs.Program {
	name := programName(called)
	all := allVerbs()
	for i := range all {
		all[i].Notes = strings.ReplaceAll(all[i].Notes, pluginName, name)
	}
	return verbs.Program{
		Name:    name,
		About:   name + " VERB finds and reads what pods have left behind, as long as Katbox keeps it:",
		More:    name + " VERB --help shows more. The connection flags of kubectl work too: kubectl options lists them.",
		Targets: targetNotes,
		Verbs:   all,
	}
}

// allVerbs returns the verbs in the order of the overview.
func allVerbs() []verbs.Verb {
	return []verbs.Verb{
		listVerb(), lsVerb(), catVerb(), tailVerb(), statVerb(), cpVerb(), pinVerb(), unpinVerb(), releaseVerb(), rmVerb(),
		debugVerb(), uiVerb(), checkVerb(), completionVerb(), versionVerb(),
	}
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

// verbFirst moves connection flags that are before the verb behind it.
func verbFirst(args []string) []string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.SetInterspersed(false)
	(&connection{}).define(flags)
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 || flags.ArgsLenAtDash() >= 0 {
		return args // and what is wrong with them is said later
	}
	before := len(args) - flags.NArg()
	moved := append([]string{args[before]}, args[:before]...)
	return append(moved, args[before+1:]...)
}
