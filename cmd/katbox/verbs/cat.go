package verbs

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func catVerb() *cobra.Command {
	var c choice
	var o verbs.ShowOptions
	verb := &cobra.Command{
		Use:   "cat TARGET:PATH...",
		Short: "writes files to standard output",
		Args:  verbs.Arguments(1, math.MaxInt),
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			for _, arg := range args {
				v, path, err := c.chosenPath(ctx, s, arg)
				if err != nil {
					return err
				}
				if err := s.Show(ctx, s.files(v, v.ID), path, o); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	c.define(verb.Flags())
	o.Define(verb.Flags())
	return verb
}

func tailVerb() *cobra.Command {
	var c choice
	var o verbs.TailOptions
	verb := &cobra.Command{
		Use:   "tail TARGET:PATH",
		Short: "writes the end of a file to standard output",
		Args:  verbs.Arguments(1, 1),
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v, path, err := c.chosenPath(ctx, s, args[0])
			if err != nil {
				return err
			}
			return s.Tail(ctx, s.files(v, v.ID), path, &o)
		}),
	}
	c.define(verb.Flags())
	o.Define(verb.Flags(), "n")
	return verb
}
