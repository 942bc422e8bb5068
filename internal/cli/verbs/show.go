package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

// defineRaw adds --raw.
func defineRaw(flags *pflag.FlagSet, raw *bool) {
	flags.BoolVar(raw, "raw", false, "on a terminal, write all control characters as they are, not only colors: they may do anything to it")
}

// ShowOptions are the flags of cat.
type ShowOptions struct{ Raw bool }

// Define adds the flags.
func (o *ShowOptions) Define(flags *pflag.FlagSet) { defineRaw(flags, &o.Raw) }

// Show writes a file to standard output.
func (s *Session) Show(ctx context.Context, v Volume, ref string, o ShowOptions) error {
	return s.show(ctx, v, api.BytesQuery{Path: ref}, o.Raw)
}

// TailOptions are the flags of tail.
type TailOptions struct {
	ShowOptions
	lines int
	bytes string
	flags *pflag.FlagSet
}

// Define adds the flags. short is the letter for --lines; it may be empty.
func (o *TailOptions) Define(flags *pflag.FlagSet, short string) {
	o.flags = flags
	flags.IntVarP(&o.lines, "lines", short, 10, "how many lines, at most 100,000 and 8 MiB")
	flags.StringVarP(&o.bytes, "bytes", "c", "", "how many bytes instead: 100, 64Ki, 5M")
	o.ShowOptions.Define(flags)
}

// Check refuses flags that are wrong, before anything is asked.
func (o *TailOptions) Check() error {
	_, err := o.query()
	return err
}

func (o *TailOptions) query() (api.BytesQuery, error) {
	switch {
	case o.lines < 0:
		return api.BytesQuery{}, WrongUsage("--lines %d is negative", o.lines)
	case o.bytes == "":
		return api.BytesQuery{TailLines: o.lines}, nil
	case o.flags.Changed("lines"):
		return api.BytesQuery{}, WrongUsage("--lines and --bytes do not go together: give one")
	}
	n, err := terminal.ParseSize(o.bytes)
	if err != nil {
		return api.BytesQuery{}, WrongUsage("--bytes %s %w", Quoted(o.bytes), err)
	}
	return api.BytesQuery{TailBytes: n}, nil
}

// Tail writes the end of a file to standard output.
func (s *Session) Tail(ctx context.Context, v Volume, ref string, o *TailOptions) error {
	q, err := o.query()
	if err != nil {
		return err
	}
	if q.TailLines == 0 && q.TailBytes == 0 {
		_, _, err := v.entry(ctx, ref)
		return err
	}
	q.Path = ref
	return s.show(ctx, v, q, o.Raw)
}

// show writes a file, or a part of it, to standard output.
func (s *Session) show(ctx context.Context, v Volume, q api.BytesQuery, raw bool) error {
	in, err := open(ctx, v, q)
	switch {
	case HasCause(err, api.IsDirectory):
		return fmt.Errorf("%s is a directory: %s ls lists it, and %s cp copies it", Quoted(pathOf(q.Path)), s.Program, s.Program)
	case err != nil:
		return err
	}
	defer in.Close()
	if !s.Shown || raw {
		return copyTo(s.Stdout, in)
	}
	escaper := terminal.NewEscaper(s.Stdout, s.Colors)
	_, err = io.Copy(escaper, in)
	err = errors.Join(err, escaper.Close())
	if n := escaper.Overwritten(); n > 0 {
		fmt.Fprintf(s.Stderr, "lines that were overwritten, as of a progress bar, are not shown (%d); --raw writes them\n", n)
	}
	return err
}
