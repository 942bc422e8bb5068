package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
)

func releaseVerb() verbs.Verb {
	return verbs.Release(`Examples:
  kubectl katbox release nightly-29000000-x7k2p --reason "all is clear"
  kubectl katbox unpin nightly-29000000-x7k2p                           keeps it after all`,
		inCluster(func(flags *pflag.FlagSet) action {
			var c choice
			c.define(flags)
			reason := verbs.DefineReason(flags)
			return func(ctx context.Context, s *session, args []string) error {
				if err := verbs.CheckReason(*reason); err != nil {
					return err
				}
				return s.decide(ctx, &c, args[0], "released", time.Time{}, func(v resource.RetainedVolume) error {
					return s.client.Release(ctx, v.Namespace, v.Name, *reason)
				})
			}
		}))
}
