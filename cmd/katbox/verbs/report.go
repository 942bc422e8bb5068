package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/terminal"
)

var reportVerb = verb{
	name:      "report",
	arguments: "[FILE]",
	summary:   "writes what support needs to know into one file",
	most:      1,
	define: func(*pflag.FlagSet) action {
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 && args[0] != toStdout {
				return s.reportTo(ctx, args[0])
			}
			if !s.shown {
				return s.report(ctx, s.stdout)
			}
			escaper := terminal.NewEscaper(s.stdout)
			return errors.Join(s.report(ctx, escaper), escaper.Close())
		}
	},
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
	fmt.Fprintf(s.stderr, "the report is in %s; it names namespaces and pods of this node\n", quoted(name))
	return nil
}
