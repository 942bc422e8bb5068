package verbs

import (
	"context"
	"math"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
)

var catVerb = verbs.Verb{
	Name:      "cat",
	Arguments: "TARGET:PATH...",
	Summary:   "writes files to standard output",
	Least:     1, Most: math.MaxInt,
	Define: onNode(func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		var o verbs.ShowOptions
		o.Define(flags)
		return func(ctx context.Context, s *session, args []string) error {
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
		}
	}),
}

var tailVerb = verbs.Verb{
	Name:      "tail",
	Arguments: "TARGET:PATH",
	Summary:   "writes the end of a file to standard output",
	Least:     1, Most: 1,
	Define: onNode(func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		var o verbs.TailOptions
		o.Define(flags, "n")
		return func(ctx context.Context, s *session, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v, path, err := c.chosenPath(ctx, s, args[0])
			if err != nil {
				return err
			}
			return s.Tail(ctx, s.files(v, v.ID), path, &o)
		}
	}),
}
