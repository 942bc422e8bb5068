package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/terminal"
)

const rawUsage = "on a terminal, write control characters as they are: they may do anything to it"

var catVerb = verb{
	name:      "cat",
	arguments: "TARGET:PATH...",
	summary:   "writes files to standard output",
	least:     1, most: math.MaxInt,
	define: func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		raw := flags.Bool("raw", false, rawUsage)
		return func(ctx context.Context, s *session, args []string) error {
			for _, arg := range args {
				v, path, err := c.chosenPath(ctx, s, arg)
				if err != nil {
					return err
				}
				if err := s.show(ctx, v, api.BytesQuery{Path: path}, *raw); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

var tailVerb = verb{
	name:      "tail",
	arguments: "TARGET:PATH",
	summary:   "writes the end of a file to standard output",
	least:     1, most: 1,
	define: func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		lines := flags.IntP("lines", "n", 10, "how many lines, at most 100,000 and 8 MiB")
		size := flags.StringP("bytes", "c", "", "how many bytes instead: 100, 64Ki, 5M")
		raw := flags.Bool("raw", false, rawUsage)
		return func(ctx context.Context, s *session, args []string) error {
			q := api.BytesQuery{TailLines: *lines}
			switch {
			case *lines < 0:
				return wrongUsage("--lines %d is negative", *lines)
			case *size != "" && flags.Changed("lines"):
				return wrongUsage("--lines and --bytes do not go together: give one")
			case *size != "":
				n, err := terminal.ParseSize(*size)
				if err != nil {
					return wrongUsage("--bytes %s %w", quoted(*size), err)
				}
				q = api.BytesQuery{TailBytes: n}
			}
			v, path, err := c.chosenPath(ctx, s, args[0])
			if err != nil {
				return err
			}
			if q.TailLines == 0 && q.TailBytes == 0 {
				_, _, err := s.entry(ctx, v.ID, path)
				return err
			}
			q.Path = path
			return s.show(ctx, v, q, *raw)
		}
	},
}

// show writes a file, or a part of it, to standard output.
func (s *session) show(ctx context.Context, v api.Volume, q api.BytesQuery, raw bool) error {
	in, err := s.open(ctx, v.ID, q)
	switch {
	case because(err, api.IsDirectory):
		return fmt.Errorf("%s is a directory: katbox ls lists it, and katbox cp copies it", quoted(pathOf(q.Path)))
	case err != nil:
		return err
	}
	defer in.Close()
	if !s.shown || raw {
		return copyTo(s.stdout, in)
	}
	escaper := terminal.NewEscaper(s.stdout)
	_, err = io.Copy(escaper, in)
	return errors.Join(err, escaper.Close())
}
