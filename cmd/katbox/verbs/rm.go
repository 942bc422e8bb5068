package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

func rmVerb() *cobra.Command {
	var c choice
	verb := &cobra.Command{
		Use:        "rm TARGET",
		Short:      "deletes a retained volume now, for good (see release)",
		Args:       verbs.Arguments(1, 1),
		SuggestFor: []string{"delete"},
	}
	c.define(verb.Flags())
	yes := verb.Flags().BoolP("yes", "y", false, "do not ask")
	reason := verbs.DefineReason(verb.Flags())
	verb.RunE = onNode(func(ctx context.Context, s *session, args []string) error {
		return s.remove(ctx, c, args[0], *yes, *reason)
	})
	return verb
}

// remove deletes the volume of a target.
func (s *session) remove(ctx context.Context, c choice, text string, yes bool, reason string) error {
	if err := verbs.CheckReason(reason); err != nil {
		return err
	}
	if !yes {
		if err := s.CanAsk(); err != nil {
			return err
		}
	}
	v, err := c.retained(ctx, s, text, "deleted")
	if err != nil {
		return err
	}
	if !yes {
		if err := s.ConfirmDelete(s.inFull(v)); err != nil {
			return err
		}
	}
	if err := s.client.Purge(ctx, v.ID, reason); err != nil {
		return s.explain(err)
	}
	fmt.Fprintf(s.Stderr, "deleted %s\n", terminal.Clean(s.inFull(v)))
	return nil
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
