package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/terminal"
)

func reportVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "report [FILE]",
		Short: "writes what support needs to know into one file",
		Args:  verbs.Arguments(0, 1),
		RunE: onNode(func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 && args[0] != verbs.ToStdout {
				return s.reportTo(ctx, args[0])
			}
			if !s.Shown {
				return s.report(ctx, s.Stdout)
			}
			escaper := terminal.NewEscaper(s.Stdout, false)
			return errors.Join(s.report(ctx, escaper), escaper.Close())
		}),
	}
}

func (s *session) report(ctx context.Context, w io.Writer) error {
	report, err := s.client.Report(ctx)
	if err != nil {
		return s.explain(err)
	}
	defer report.Close()
	_, err = io.Copy(w, report)
	return err
}

// reportTo writes the report to a new file.
func (s *session) reportTo(ctx context.Context, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(s.report(ctx, f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Fprintf(s.Stderr, "the report is in %s; it names namespaces and pods of this node\n", verbs.Quoted(name))
	return nil
}
