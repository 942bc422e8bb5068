package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func describeVerb(conn *connection) *cobra.Command {
	var selector string
	verb := &cobra.Command{
		Use:               "describe TARGET",
		Short:             "says how a pod ended that is gone, what it printed last, and what is kept of it",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox describe job/nightly-29000000        the pod of a Job that ended last
  kubectl katbox describe nightly-29000000-x7k2p`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			t, err := wholeTarget(args[0], "described")
			if err != nil {
				return err
			}
			kept, incomplete, err := s.podOf(ctx, t, selector)
			if err != nil {
				return err
			}
			return s.Describe(ctx, s.pod(kept, incomplete))
		}),
	}
	verb.Flags().StringVarP(&selector, "selector", "l", "", "only of pods whose volumes have these labels")
	return verb
}

// podOf returns the volumes that are kept of the pod that a target means, or of the one that ended last. incomplete: nodes
// did not answer.
func (s *session) podOf(ctx context.Context, t target, selector string) (kept []resource.RetainedVolume, incomplete bool, err error) {
	var one resource.RetainedVolume
	if t.volume != "" {
		if one, err = (&choice{}).one(ctx, s, t); err == nil && one.Spec.PodUID == "" {
			err = verbs.WrongUsage("%s is no volume of a pod: see %s stat", t, s.Program)
		}
	} else {
		isOfPod := func(v *resource.RetainedVolume) bool { return v.Spec.PodUID != "" }
		one, incomplete, err = s.ofLastPod(ctx, t.query(s.namespace, selector), isOfPod)
	}
	if err == nil && one.Name != "" {
		var lacking bool
		lacking, err = s.eachPage(ctx, ofPod(&one), func(page cluster.Page) error {
			kept = append(kept, page.Items...)
			return nil
		})
		incomplete = incomplete || lacking
	}
	switch {
	case err != nil:
		return nil, false, err
	case len(kept) == 0 && incomplete:
		return nil, false, fmt.Errorf("nothing of %s is kept on the nodes that answered; some did not: try again later", t)
	case len(kept) == 0:
		if gone := s.gone(ctx, t, selector, ""); gone != "" {
			return nil, false, verbs.NoVolume("nothing of %s is kept any more: %s", t, gone)
		}
		return nil, false, verbs.NoVolume("nothing of %s is kept; see %s list. If the pod still exists, see kubectl describe", t, s.Program)
	}
	return kept, incomplete, nil
}

// pod returns the pod whose volumes these are, for a description.
func (s *session) pod(kept []resource.RetainedVolume, incomplete bool) verbs.Pod {
	first := kept[0]
	p := verbs.Pod{Name: first.Spec.PodName, Namespace: first.Namespace, UID: first.Spec.PodUID, Node: first.Spec.NodeName,
		Incomplete: incomplete, Flags: "-n " + first.Namespace + " "}
	if first.Spec.Owner != nil {
		p.Owner = owner(first.Spec.Owner)
	}
	for _, v := range kept {
		p.Outcome = cmp.Or(p.Outcome, v.Status.Outcome)
		p.Kept = append(p.Kept, verbs.Kept{Volume: s.files(v), Name: v.Spec.VolumeName, Size: v.Status.Bytes, Expires: at(v.Status.ExpiresAt)})
	}
	return p
}
