package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
)

func releaseVerb(conn *connection) *cobra.Command {
	var c choice
	var reason *string
	verb := verbs.Release(&cobra.Command{
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox release nightly-29000000-x7k2p --reason "all is clear"
  kubectl katbox unpin nightly-29000000-x7k2p                           keeps it after all`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			if err := verbs.CheckReason(*reason); err != nil {
				return err
			}
			return s.decide(ctx, &c, args[0], "released", time.Time{}, func(v resource.RetainedVolume) error {
				return s.client.Release(ctx, v.Namespace, v.Name, *reason)
			})
		}),
	})
	c.define(verb.Flags())
	reason = verbs.DefineReason(verb.Flags())
	return verb
}
