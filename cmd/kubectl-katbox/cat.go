package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func catVerb(conn *connection) *cobra.Command {
	var c choice
	var o verbs.ShowOptions
	verb := &cobra.Command{
		Use:               "cat TARGET:PATH...",
		Short:             "writes files to standard output",
		Args:              verbs.Arguments(1, math.MaxInt),
		ValidArgsFunction: conn.targets(filesAlone, math.MaxInt),
		Example: `  kubectl katbox cat nightly-29000000-x7k2p:out/log.txt                 a file of a pod
  kubectl katbox cat job/nightly-29000000:out/log.txt --last            of the pod of a Job that ended last
  kubectl katbox cat -n ci web-0:data/export.csv.gz | gunzip | head     bytes as they are, if not for a terminal`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
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
		}),
	}
	c.define(verb.Flags())
	o.Define(verb.Flags())
	return verb
}
