package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func lsVerb() verbs.Verb {
	return verbs.Verb{
		Name:      "ls",
		Arguments: "TARGET[:PATH]",
		Summary:   "lists the files of a retained volume",
		Least:     1, Most: 1,
		Notes: `Examples:
  kubectl katbox ls nightly-29000000-x7k2p             the top of the volume of a pod
  kubectl katbox ls -l nightly-29000000-x7k2p:out      a directory, with size and time of each file
  kubectl katbox ls -R job/nightly-29000000 --last     all of the volume that the Job left last
  kubectl katbox ls -o name nightly-29000000-x7k2p:    what the other verbs take, for scripts`,
		Define: inCluster(func(flags *pflag.FlagSet) action {
			var o verbs.ListOptions
			flags.BoolVarP(&o.Long, "long", "l", false, "with mode, owner, size and time")
			flags.BoolVarP(&o.Recursive, "recursive", "R", false, "with all that is below")
			flags.BoolVarP(&o.Hidden, "all", "a", false, "with names that begin with a dot")
			flags.IntVar(&o.Limit, "limit", 0, "list at most this many; 0 for all")
			flags.StringVarP(&o.Output, "output", "o", verbs.OutputTable, "wide (as -l), json, or name (targets for other verbs)")
			var c choice
			c.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				if err := o.Check(); err != nil {
					return err
				}
				t, err := parseTarget(args[0])
				if err != nil {
					return err
				}
				v, err := c.one(ctx, s, t)
				if err != nil {
					return err
				}
				return s.ListFiles(ctx, s.files(v), t.path, o)
			}
		}),
	}
}
