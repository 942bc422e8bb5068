package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
)

func unpinVerb(conn *connection) *cobra.Command {
	var c choice
	verb := verbs.Unpin(&cobra.Command{
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox unpin nightly-29000000-x7k2p
  kubectl katbox unpin --last job/nightly`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			return s.decide(ctx, &c, args[0], "unpinned", time.Time{}, func(v resource.RetainedVolume) error {
				_, err := s.client.Unpin(ctx, v.Namespace, v.Name)
				return err
			})
		}),
	})
	c.define(verb.Flags())
	return verb
}
