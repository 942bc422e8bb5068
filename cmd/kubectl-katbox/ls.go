package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func lsVerb(conn *connection) *cobra.Command {
	var c choice
	var o verbs.ListOptions
	verb := &cobra.Command{
		Use:               "ls TARGET[:PATH]",
		Short:             "lists the files of a retained volume",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(pathsToo, 1),
		Example: `  kubectl katbox ls nightly-29000000-x7k2p             the top of the volume of a pod
  kubectl katbox ls -l nightly-29000000-x7k2p:out      a directory, with size and time of each file
  kubectl katbox ls -R job/nightly-29000000 --last     all of the volume that the Job left last
  kubectl katbox ls -o name nightly-29000000-x7k2p:    what the other verbs take, for scripts`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
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
		}),
	}
	flags := verb.Flags()
	flags.BoolVarP(&o.Long, "long", "l", false, "with mode, owner, size and time")
	flags.BoolVarP(&o.Recursive, "recursive", "R", false, "with all that is below")
	flags.BoolVarP(&o.Hidden, "all", "a", false, "with names that begin with a dot")
	flags.IntVar(&o.Limit, "limit", 0, "list at most this many; 0 for all")
	flags.StringVarP(&o.Output, "output", "o", verbs.OutputTable, "wide (as -l), json, or name (targets for other verbs)")
	completeFlag(verb, "output", oneOf(outputWide, outputJSON, outputName))
	c.define(flags)
	return verb
}
