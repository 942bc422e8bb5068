package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/podend"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
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
			return s.describePod(ctx, kept, incomplete)
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
		return nil, false, verbs.NoVolume("nothing of %s is kept; see %s list --gone. If the pod still exists, see kubectl describe",
			t, s.Program)
	}
	return kept, incomplete, nil
}

// describePod describes the pod whose volumes these are.
func (s *session) describePod(ctx context.Context, kept []resource.RetainedVolume, incomplete bool) error {
	first := kept[0]
	var logs *resource.RetainedVolume
	outcome := ""
	for i := range kept {
		if kept[i].Spec.VolumeName == volume.LogsName {
			logs = &kept[i]
		}
		if outcome == "" {
			outcome = kept[i].Status.Outcome
		}
	}
	var end podend.Pod
	known := false
	if logs != nil {
		var err error
		if end, known, err = verbs.Ending(ctx, s.files(*logs)); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.Stdout, "Pod:       %s\nNamespace: %s\nUID:       %s\nNode:      %s\n", verbs.Known(first.Spec.PodName), first.Namespace,
		verbs.Known(first.Spec.PodUID), verbs.Known(first.Spec.NodeName))
	if first.Spec.Owner != nil {
		fmt.Fprintf(s.Stdout, "Owner:     %s\n", owner(first.Spec.Owner))
	}
	fmt.Fprintf(s.Stdout, "Outcome:   %s\n", verbs.Known(outcome))
	if known {
		s.WriteEnding(end)
	} else {
		fmt.Fprintln(s.Stdout, "Status:    not known: nothing has told the node how the containers ended, or it keeps no logs")
	}
	if err := s.listKept(kept, incomplete); err != nil {
		return err
	}
	if logs != nil {
		if err := s.LastLines(ctx, s.files(*logs), logs.Spec.PodName); err != nil {
			return err
		}
	}
	s.suggest(kept, logs)
	return nil
}

// listKept lists what is kept of a pod, and until when.
func (s *session) listKept(kept []resource.RetainedVolume, incomplete bool) error {
	fmt.Fprintln(s.Stdout, "Kept:")
	table := terminal.NewTable(s.Stdout)
	for _, v := range kept {
		size, until := terminal.Unknown, terminal.Unknown
		if v.Status.Bytes != nil {
			size = terminal.Size(*v.Status.Bytes)
		}
		if t := at(v.Status.ExpiresAt); !t.IsZero() {
			until = "until " + verbs.Moment(t) + " (" + terminal.In(s.Now(), t) + ")"
		}
		table.Row("  "+verbs.Known(v.Spec.VolumeName), size, until, v.Name)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if incomplete {
		fmt.Fprintln(s.Stdout, "  Some nodes did not answer: there may be more.")
	}
	return nil
}

// suggest names the commands that show more.
func (s *session) suggest(kept []resource.RetainedVolume, logs *resource.RetainedVolume) {
	fmt.Fprintln(s.Stdout, "\nMore:")
	if logs != nil {
		fmt.Fprintf(s.Stdout, "  %s logs -n %s %s --all-containers\n", s.Program, logs.Namespace, logs.Name)
	}
	for _, v := range kept {
		if v.Spec.VolumeName != volume.LogsName {
			fmt.Fprintf(s.Stdout, "  %s ls -n %s %s\n", s.Program, v.Namespace, v.Name)
		}
	}
}
