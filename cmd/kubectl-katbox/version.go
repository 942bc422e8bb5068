package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func versionVerb() verbs.Verb {
	return verbs.Verb{
		Name:    "version",
		Summary: "says which versions this program and the cluster's gateway have",
		Notes: `Examples:
  kubectl katbox version            both
  kubectl katbox version --client   this program alone, without asking the cluster`,
		Define: func(flags *pflag.FlagSet) verbs.Action {
			client := flags.Bool("client", false, "this program alone; the cluster is not asked")
			var c connection
			c.define(flags)
			return func(ctx context.Context, s *verbs.Session, _ []string) error {
				if _, err := fmt.Fprintf(s.Stdout, "kubectl-katbox %s (%s, %s/%s)\n", version, commit(), runtime.GOOS, runtime.GOARCH); err != nil {
					return err
				}
				if *client {
					return nil
				}
				api, _, err := c.open()
				if err != nil {
					return err
				}
				gateway, err := api.Gateway(ctx)
				switch {
				case err != nil:
					return api.Explain(ctx, "", err)
				case !gateway.Installed:
					return fmt.Errorf("this cluster has no APIService %s; %s", cluster.APIService, cluster.Install)
				case !gateway.Available:
					return fmt.Errorf("the gateway does not answer: %s; see %s check", gateway.Reason, s.Program)
				}
				_, err = fmt.Fprintf(s.Stdout, "katbox-gateway %s\n", known(gateway.Version))
				return err
			}
		},
	}
}

// commit returns the first digits of the commit that the program was built from.
func commit() string {
	if revision == "" {
		return "unknown commit"
	}
	return "commit " + revision[:min(len(revision), 12)]
}

// known returns the version of a gateway. The first ones do not tell it.
func known(version string) string { return cmp.Or(terminal.Clean(version), "of an unknown version") }
