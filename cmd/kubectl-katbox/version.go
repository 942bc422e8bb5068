package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/verbs"
)

func versionVerb() verbs.Verb {
	return verbs.Verb{
		Name:    "version",
		Summary: "says which version this is",
		Define: func(*pflag.FlagSet) verbs.Action {
			return func(_ context.Context, s *verbs.Session, _ []string) error {
				_, err := fmt.Fprintf(s.Stdout, "kubectl-katbox %s (%s, %s/%s)\n", version, short(revision), runtime.GOOS, runtime.GOARCH)
				return err
			}
		},
	}
}

// short returns the first digits of a commit.
func short(commit string) string {
	if commit == "" {
		return "unknown commit"
	}
	return "commit " + commit[:min(len(commit), 12)]
}
