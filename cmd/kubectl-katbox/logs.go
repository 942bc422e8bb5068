package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

func logsVerb(conn *connection) *cobra.Command {
	c := choice{volume: volume.LogsName}
	var o verbs.LogsOptions
	verb := &cobra.Command{
		Use:               "logs TARGET",
		Short:             "writes what the containers of a pod printed that is gone",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(volumesAlone, 1),
		Example: `  kubectl katbox logs job/nightly-29000000                   of the pod of a Job that ended last
  kubectl katbox logs nightly-29000000-x7k2p -c main --tail 100
  kubectl katbox logs nightly-29000000-x7k2p -c main --previous --timestamps
  kubectl katbox logs -n ci web-0 --all-containers --prefix --since 2h`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			t, err := wholeTarget(args[0], "meant")
			if err != nil {
				return err
			}
			v, err := c.logs(ctx, s, t)
			if err != nil {
				return err
			}
			return s.Logs(ctx, s.files(v), v.Spec.PodName, &o)
		}),
	}
	o.Define(verb.Flags())
	verb.Flags().StringVarP(&c.selector, "selector", "l", "", "only of pods whose volumes have these labels")
	return verb
}

// logs returns the volume with the logs of the pod that a target means, or of the one that ended last.
func (c *choice) logs(ctx context.Context, s *session, t target) (resource.RetainedVolume, error) {
	query := t.query(s.namespace, c.selector)
	if t.volume != "" {
		v, err := (&choice{}).one(ctx, s, t)
		if err != nil || v.Spec.VolumeName == volume.LogsName {
			return v, err
		}
		query = ofPod(&v)
	}
	last, incomplete, err := s.ofLastPod(ctx, query, func(v *resource.RetainedVolume) bool { return v.Spec.VolumeName == c.volume })
	switch {
	case err != nil:
		return last, err
	case last.Name == "" && incomplete:
		return last, fmt.Errorf("no logs of %s are kept on the nodes that answered; some did not: try again later", t)
	case last.Name == "":
		if gone := s.gone(ctx, t, c.selector, c.volume); gone != "" {
			return last, verbs.NoVolume("no logs of %s are kept any more: %s", t, gone)
		}
		return last, verbs.NoVolume("no logs of %s are kept: its node keeps none (--logs=off) or had no room, it printed nothing, they have "+
			"expired, or it ended in the last seconds; see %s list %s. If the pod still exists, read them with kubectl logs", t, s.Program, t)
	}
	return last, nil
}

// ofLastPod returns the first volume that is meant, which is of the pod that ended last; one without a name if there is none.
// It says if others are of other pods. incomplete: nodes did not answer.
func (s *session) ofLastPod(ctx context.Context, query cluster.Query, isMeant func(*resource.RetainedVolume) bool,
) (last resource.RetainedVolume, incomplete bool, err error) {
	pods := map[string]bool{}
	incomplete, err = s.eachPage(ctx, query, func(page cluster.Page) error {
		for i := range page.Items {
			v := &page.Items[i]
			if !isMeant(v) {
				continue
			}
			if len(pods) == 0 {
				last = *v
			}
			if pods[v.Spec.PodUID] = true; len(pods) > mostMatches {
				return cluster.ErrEnough
			}
		}
		return nil
	})
	if err == nil && len(pods) > 1 {
		count := fmt.Sprint(len(pods))
		if len(pods) > mostMatches {
			count = fmt.Sprintf("more than %d", mostMatches)
		}
		fmt.Fprintf(s.Stderr, "Found %s pods, using pod/%s, which ended last\n", count, last.Spec.PodName)
	}
	return last, incomplete, err
}

// ofPod selects the volumes of the pod that has one.
func ofPod(v *resource.RetainedVolume) cluster.Query {
	return cluster.Query{Namespace: v.Namespace, FieldSelector: equals(fieldPodUID, v.Spec.PodUID)}
}
