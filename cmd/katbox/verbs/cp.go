package verbs

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
)

var cpVerb = verbs.Verb{
	Name:      "cp",
	Arguments: "TARGET[:PATH] DEST",
	Summary:   "copies a file, a directory or a whole volume",
	Least:     2, Most: 2,
	Define: onNode(defineCp),
	Notes: `The contents of a directory go into the directory DEST, which is made if it does not exist.
DEST - is standard output, for the bytes of a file or a tar of a directory.
If a copy is cut, what has come of a file or of a new directory stays as DEST.partial, and the same command
goes on from there.

  katbox cp etl/nightly-x7k2p:out/log.txt .
  katbox cp etl/nightly-x7k2p - | tar xf -`,
}

func defineCp(flags *pflag.FlagSet) action {
	var o verbs.CopyOptions
	o.Define(flags)
	var c choice
	c.define(flags)
	return func(ctx context.Context, s *session, args []string) error {
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
	}
}
