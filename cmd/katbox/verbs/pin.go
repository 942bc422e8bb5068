package verbs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

func pinVerb() *cobra.Command {
	var c choice
	var o verbs.PinOptions
	verb := verbs.Pin(&cobra.Command{
		Example: `  katbox pin etl/nightly-x7k2q --for 48h --reason "post-mortem"
  katbox unpin etl/nightly-x7k2q     takes that back`,
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			until, reason, err := o.Check(s.Now())
			if err != nil {
				return err
			}
			return s.decide(ctx, c, args[0], "pinned", until, func(v api.Volume) (api.Volume, error) {
				return s.client.Pin(ctx, v.ID, until, reason)
			})
		}),
	})
	c.define(verb.Flags())
	o.Define(verb.Flags())
	return verb
}

// decide changes how long a volume is kept, and says until when it is now. done is what is done with it,
// pinned when a pin ends.
func (s *session) decide(
	ctx context.Context, c choice, text, done string, pinned time.Time, change func(api.Volume) (api.Volume, error),
) error {
	v, err := c.retained(ctx, s, text, done)
	if err != nil {
		return err
	}
	now, err := change(v)
	if err != nil {
		return s.explain(err)
	}
	fmt.Fprintln(s.Stderr, verbs.Decided(s.Now(), done, describe(v), pinned, at(now.ExpiresAt)))
	return nil
}
