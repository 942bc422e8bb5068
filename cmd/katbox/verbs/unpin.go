package verbs

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

var unpinVerb = verbs.Unpin("", onNode(func(flags *pflag.FlagSet) action {
	var c choice
	c.define(flags)
	return func(ctx context.Context, s *session, args []string) error {
		return s.decide(ctx, c, args[0], "unpinned", time.Time{}, func(v api.Volume) (api.Volume, error) { return s.client.Unpin(ctx, v.ID) })
	}
}))
