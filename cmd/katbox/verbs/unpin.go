package verbs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

func unpinVerb() *cobra.Command {
	var c choice
	verb := verbs.Unpin(&cobra.Command{
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			return s.decide(ctx, c, args[0], "unpinned", time.Time{}, func(v api.Volume) (api.Volume, error) { return s.client.Unpin(ctx, v.ID) })
		}),
	})
	c.define(verb.Flags())
	return verb
}
