package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func versionVerb(conn *connection) *cobra.Command {
	var client bool
	verb := &cobra.Command{
		Use:   "version",
		Short: "says which versions this program and the cluster's gateway have",
		Args:  verbs.Arguments(0, 0),
		Example: `  kubectl katbox version            both
  kubectl katbox version --client   this program alone, without asking the cluster`,
		RunE: func(verb *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintf(verb.OutOrStdout(), "kubectl-katbox %s (%s, %s/%s)\n",
				version, commit(), runtime.GOOS, runtime.GOARCH); err != nil || client {
				return err
			}
			return inCluster(conn, showGateway)(verb, nil)
		},
	}
	verb.Flags().BoolVar(&client, "client", false, "this program alone; the cluster is not asked")
	return verb
}

// showGateway says which version the cluster's gateway has.
func showGateway(ctx context.Context, s *session, _ []string) error {
	gateway, err := s.client.Gateway(ctx)
	switch {
	case err != nil:
		return s.client.Explain(ctx, "", err)
	case !gateway.Installed:
		return fmt.Errorf("this cluster has no APIService %s; %s", cluster.APIService, cluster.Install)
	case !gateway.Available:
		return fmt.Errorf("the gateway does not answer: %s; see %s check", gateway.Reason, s.Program)
	}
	_, err = fmt.Fprintf(s.Stdout, "katbox-gateway %s\n", known(gateway.Version))
	return err
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
