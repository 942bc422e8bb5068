package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func tailVerb() verbs.Verb {
	return verbs.Verb{
		Name:      "tail",
		Arguments: "TARGET:PATH",
		Summary:   "writes the end of a file to standard output",
		Least:     1, Most: 1,
		Notes: `Examples:
  kubectl katbox tail nightly-29000000-x7k2p:out/log.txt             the last ten lines
  kubectl katbox tail -n 100 job/nightly-29000000:out/log.txt        the last hundred
  kubectl katbox tail -c 64Ki nightly-29000000-x7k2p:out/log.txt     the last 64 KiB
  kubectl katbox tail -n ci -n 100 nightly-29000000-x7k2p:log.txt    -n takes a number of lines, or a namespace`,
		Define: inCluster(func(flags *pflag.FlagSet) action {
			var o verbs.TailOptions
			o.Define(flags, "")
			flags.Lookup("lines").Usage += "; -n 100 is short for it"
			flags.VarPF(linesOrNamespace{flags}, "lines-or-namespace", "n", "").Hidden = true
			var c choice
			c.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				if err := o.Check(); err != nil {
					return err
				}
				v, path, err := c.chosenPath(ctx, s, args[0])
				if err != nil {
					return err
				}
				return s.Tail(ctx, v, path, &o)
			}
		}),
	}
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
