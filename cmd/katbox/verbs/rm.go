package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

var rmVerb = verbs.Verb{
	Name:      "rm",
	Arguments: "TARGET",
	Summary:   "deletes a retained volume now, for good (see release)",
	Least:     1, Most: 1,
	Define: onNode(func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		yes := flags.BoolP("yes", "y", false, "do not ask")
		reason := verbs.DefineReason(flags)
		return func(ctx context.Context, s *session, args []string) error {
			if err := verbs.CheckReason(*reason); err != nil {
				return err
			}
			if !*yes {
				if err := s.CanAsk(); err != nil {
					return err
				}
			}
			v, err := c.retained(ctx, s, args[0], "deleted")
			if err != nil {
				return err
			}
			if !*yes {
				if err := s.ConfirmDelete(s.inFull(v)); err != nil {
					return err
				}
			}
			if err := s.client.Purge(ctx, v.ID, *reason); err != nil {
				return s.explain(err)
			}
			fmt.Fprintf(s.Stderr, "deleted %s\n", terminal.Clean(s.inFull(v)))
			return nil
		}
	}),
}

// inFull returns a volume with its size and age, for messages.
func (s *session) inFull(v api.Volume) string {
	size := "of unknown size"
	if v.Bytes != nil {
		size = terminal.Size(*v.Bytes)
	}
	if t := at(v.RetainedAt); !t.IsZero() {
		size += ", retained " + terminal.Ago(s.Now(), t)
	}
	return describe(v) + " (" + size + ")"
}
