package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
)

func unpinVerb() verbs.Verb {
	return verbs.Unpin(`Examples:
  kubectl katbox unpin nightly-29000000-x7k2p
  kubectl katbox unpin --last job/nightly`,
		inCluster(func(flags *pflag.FlagSet) action {
			var c choice
			c.define(flags)
			return func(ctx context.Context, s *session, args []string) error {
				return s.decide(ctx, &c, args[0], "unpinned", time.Time{}, func(v resource.RetainedVolume) error {
					_, err := s.client.Unpin(ctx, v.Namespace, v.Name)
					return err
				})
			}
		}))
}
