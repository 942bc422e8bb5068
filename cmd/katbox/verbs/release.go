package verbs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

func releaseVerb() *cobra.Command {
	var c choice
	var reason *string
	verb := verbs.Release(&cobra.Command{
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			if err := verbs.CheckReason(*reason); err != nil {
				return err
			}
			return s.decide(ctx, c, args[0], "released", time.Time{}, func(v api.Volume) (api.Volume, error) {
				return s.client.Release(ctx, v.ID, *reason)
			})
		}),
	})
	c.define(verb.Flags())
	reason = verbs.DefineReason(verb.Flags())
	return verb
}
