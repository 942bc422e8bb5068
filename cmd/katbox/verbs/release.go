package verbs

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

var releaseVerb = verbs.Release("", onNode(func(flags *pflag.FlagSet) action {
	var c choice
	c.define(flags)
	reason := verbs.DefineReason(flags)
	return func(ctx context.Context, s *session, args []string) error {
		if err := verbs.CheckReason(*reason); err != nil {
			return err
		}
		return s.decide(ctx, c, args[0], "released", time.Time{}, func(v api.Volume) (api.Volume, error) {
			return s.client.Release(ctx, v.ID, *reason)
		})
	}
}))
