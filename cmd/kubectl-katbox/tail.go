package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func tailVerb(conn *connection) *cobra.Command {
	var c choice
	var o verbs.TailOptions
	verb := &cobra.Command{
		Use:               "tail TARGET:PATH",
		Short:             "writes the end of a file to standard output",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(filesAlone, 1),
		Example: `  kubectl katbox tail nightly-29000000-x7k2p:out/log.txt             the last ten lines
  kubectl katbox tail -n 100 job/nightly-29000000:out/log.txt        the last hundred
  kubectl katbox tail -c 64Ki nightly-29000000-x7k2p:out/log.txt     the last 64 KiB
  kubectl katbox tail -n ci -n 100 nightly-29000000-x7k2p:log.txt    -n takes a number of lines, or a namespace`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v, path, err := c.chosenPath(ctx, s, args[0])
			if err != nil {
				return err
			}
			return s.Tail(ctx, v, path, &o)
		}),
	}
	flags := verb.Flags()
	o.Define(flags, "")
	flags.Lookup("lines").Usage += "; -n 100 is short for it"
	flags.VarPF(linesOrNamespace{flags}, "lines-or-namespace", "n", "").Hidden = true
	c.define(flags)
	flags.AddFlag(conn.namespaceInFull())
	for _, flag := range []string{"lines-or-namespace", clientcmd.FlagNamespace} {
		completeFlag(verb, flag, conn.ofKubeconfig(namespacesOf))
	}
	return verb
}

// linesOrNamespace is the value of -n: with a number it is --lines, as in tail(1), and else --namespace,
// as in kubectl. A namespace whose name is a number needs --namespace.
type linesOrNamespace struct{ flags *pflag.FlagSet }

func (v linesOrNamespace) Set(text string) error {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return v.flags.Set("lines", text)
	}
	return v.flags.Set(clientcmd.FlagNamespace, text)
}

func (v linesOrNamespace) String() string { return "" }

func (v linesOrNamespace) Type() string { return "string" }
