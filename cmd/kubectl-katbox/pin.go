package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func pinVerb(conn *connection) *cobra.Command {
	var c choice
	var o verbs.PinOptions
	verb := verbs.Pin(&cobra.Command{
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox pin --last job/nightly --for 48h --reason "post-mortem"
  kubectl katbox unpin nightly-29000000-x7k2p.q3fd7k2m9c4a                 takes that back`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			until, reason, err := o.Check(s.Now())
			if err != nil {
				return err
			}
			return s.decide(ctx, &c, args[0], "pinned", until, func(v resource.RetainedVolume) error {
				_, err := s.client.Pin(ctx, v.Namespace, v.Name, until, reason)
				return err
			})
		}),
	})
	c.define(verb.Flags())
	o.Define(verb.Flags())
	return verb
}

// decide changes how long the volume of a target is kept, and says until when it is now. done is what is
// done with it, pinned when a pin ends.
func (s *session) decide(
	ctx context.Context, c *choice, text, done string, pinned time.Time, change func(resource.RetainedVolume) error,
) error {
	t, err := wholeTarget(text, done)
	if err != nil {
		return err
	}
	c.certain = true
	v, err := c.one(ctx, s, t)
	if err != nil {
		return err
	}
	if err := change(v); err != nil {
		return s.client.Explain(ctx, cluster.ID(v.Namespace, v.Name), err)
	}
	var expires time.Time
	if now, err := s.client.Get(ctx, v.Namespace, v.Name); err == nil { // else it is done all the same
		expires = at(now.Status.ExpiresAt)
	}
	fmt.Fprintln(s.Stderr, verbs.Decided(s.Now(), done, describe(v), pinned, expires))
	return nil
}
