package main

import (
	"context"
	"math"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func catVerb() verbs.Verb {
	return verbs.Verb{
		Name:      "cat",
		Arguments: "TARGET:PATH...",
		Summary:   "writes files to standard output",
		Least:     1, Most: math.MaxInt,
		Notes: `Examples:
  kubectl katbox cat nightly-29000000-x7k2p:out/log.txt                 a file of a pod
  kubectl katbox cat job/nightly-29000000:out/log.txt --last            of the pod of a Job that ended last
  kubectl katbox cat -n ci web-0:data/export.csv.gz | gunzip | head     bytes as they are, if not for a terminal`,
		Define: inCluster(func(flags *pflag.FlagSet) action {
			var c choice
			c.define(flags)
			var o verbs.ShowOptions
			o.Define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				for _, arg := range args {
					v, path, err := c.chosenPath(ctx, s, arg)
					if err != nil {
						return err
					}
					if err := s.Show(ctx, v, path, o); err != nil {
						return err
					}
				}
				return nil
			}
		}),
	}
}
