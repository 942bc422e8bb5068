package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func rmVerb(conn *connection) *cobra.Command {
	var c choice
	var yes bool
	var reason *string
	verb := &cobra.Command{
		Use:               "rm TARGET",
		Short:             "deletes a retained volume now, for good (see release)",
		Args:              verbs.Arguments(1, 1),
		SuggestFor:        []string{"delete"},
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox rm nightly-29000000-x7k2p                      asks before it deletes
  kubectl katbox rm nightly-29000000-x7k2p.q3fd7k2m9c4a --yes   one volume, without a question: for scripts`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			return s.remove(ctx, &c, args[0], yes, *reason)
		}),
	}
	c.define(verb.Flags())
	verb.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed in a script, which has no user to ask")
	reason = verbs.DefineReason(verb.Flags())
	return verb
}

// remove deletes the volume of a target.
func (s *session) remove(ctx context.Context, c *choice, text string, yes bool, reason string) error {
	t, err := wholeTarget(text, "deleted")
	if err != nil {
		return err
	}
	if err := verbs.CheckReason(reason); err != nil {
		return err
	}
	if !yes {
		if err := s.CanAsk(); err != nil {
			return err
		}
	}
	c.certain = yes // a question names the volume, and a warning is above it
	v, err := c.one(ctx, s, t)
	if err != nil {
		return err
	}
	if !yes {
		if err := s.ConfirmDelete(s.inFull(v)); err != nil {
			return err
		}
	}
	if err := s.client.Purge(ctx, v.Namespace, v.Name, reason); err != nil {
		return s.client.Explain(ctx, cluster.ID(v.Namespace, v.Name), err)
	}
	fmt.Fprintf(s.Stderr, "deleted %s\n", terminal.Clean(s.inFull(v)))
	return nil
}

// inFull returns a volume with its name, size and age, for messages.
func (s *session) inFull(v resource.RetainedVolume) string {
	details := []string{v.Name}
	if v.Status.Bytes != nil {
		details = append(details, terminal.Size(*v.Status.Bytes))
	}
	if t := at(v.Status.RetainedAt); !t.IsZero() {
		details = append(details, "retained "+terminal.Ago(s.Now(), t))
	}
	if v.Spec.NodeName != "" {
		details = append(details, "on node "+v.Spec.NodeName)
	}
	return describe(v) + " (" + strings.Join(details, ", ") + ")"
}
