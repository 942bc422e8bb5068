package verbs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
)

func cpVerb() *cobra.Command {
	var c choice
	var o verbs.CopyOptions
	verb := &cobra.Command{
		Use:   "cp TARGET[:PATH] DEST",
		Short: "copies a file, a directory or a whole volume",
		Args:  verbs.Arguments(2, 2),
		Long: `The contents of a directory go into the directory DEST, which is made if it does not exist.
DEST - is standard output, for the bytes of a file or a tar of a directory.
If a copy is cut, what has come of a file or of a new directory stays as DEST.partial, and the same command
goes on from there.`,
		Example: `  katbox cp etl/nightly-x7k2p:out/log.txt .
  katbox cp etl/nightly-x7k2p - | tar xf -`,
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			t, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if err := o.Check(args[1]); err != nil {
				return err
			}
			v, err := c.choose(ctx, s, t)
			if err != nil {
				return err
			}
			return s.Copy(ctx, s.files(v, v.ID), t.path, args[1], &o)
		}),
	}
	o.Define(verb.Flags())
	c.define(verb.Flags())
	return verb
}
