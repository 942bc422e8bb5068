package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
)

func statVerb(conn *connection) *cobra.Command {
	var c choice
	var output string
	verb := &cobra.Command{
		Use:               "stat TARGET[:PATH]",
		Short:             "describes a retained volume or a file in it",
		Args:              verbs.Arguments(1, 1),
		ValidArgsFunction: conn.targets(pathsToo, 1),
		Example: `  kubectl katbox stat nightly-29000000-x7k2p                  the volume: where it is, how large, until when
  kubectl katbox stat nightly-29000000-x7k2p:out/log.txt      a file: size, mode, owner, time
  kubectl katbox stat -o json nightly-29000000-x7k2p:out`,
		RunE: inCluster(conn, func(ctx context.Context, s *session, args []string) error {
			t, err := parseTarget(args[0])
			switch {
			case err != nil:
				return err
			case output != outputTable && output != outputJSON:
				return verbs.WrongUsage("--output %s is not json", verbs.Quoted(output))
			}
			v, err := c.one(ctx, s, t)
			if err != nil {
				return err
			}
			if !t.hasPath {
				return s.statVolume(v, output == outputJSON)
			}
			return s.StatFile(ctx, s.files(v), t.path, output == outputJSON)
		}),
	}
	c.define(verb.Flags())
	verb.Flags().StringVarP(&output, "output", "o", "", "json")
	completeFlag(verb, "output", oneOf(outputJSON))
	return verb
}

// statVolume describes a volume.
func (s *session) statVolume(v resource.RetainedVolume, asJSON bool) error {
	if asJSON {
		return s.WriteJSON(v)
	}
	table := terminal.NewTable(s.Stdout)
	table.Row("Name:", v.Name)
	table.Row("Namespace:", v.Namespace)
	if v.Spec.ClaimName != "" {
		table.Row("Claim:", v.Spec.ClaimName)
	} else {
		table.Row("Pod:", verbs.Known(v.Spec.PodName))
		table.Row("Pod UID:", verbs.Known(v.Spec.PodUID))
		table.Row("Volume:", verbs.Known(v.Spec.VolumeName))
	}
	table.Row("Owner:", owner(v.Spec.Owner))
	if v.Spec.PoolName != "" {
		table.Row("Pool:", v.Spec.PoolName)
		table.Row("PoolClass:", v.Spec.ClassName)
	} else {
		table.Row("Node:", verbs.Known(v.Spec.NodeName))
	}
	table.Row("ID:", v.Spec.VolumeID)
	table.Row("Phase:", v.Status.Phase)
	table.Row("Outcome:", verbs.Known(v.Status.Outcome))
	s.statTime(table, "Published:", v.Status.PublishedAt)
	s.statTime(table, "Retained:", v.Status.RetainedAt)
	if t := at(v.Status.ExpiresAt); !t.IsZero() {
		expires := verbs.Moment(t) + " (" + terminal.In(s.Now(), t) + ")"
		if v.Status.MayGoEarlier {
			expires += ", earlier than its lifespan: the disk fills up"
		}
		table.Row("Expires:", expires)
	}
	if t := at(v.Status.ArchivedUntil); t.After(s.Now()) {
		table.Row("Archived:", "until "+verbs.Moment(t)+" ("+terminal.In(s.Now(), t)+")")
	}
	if h := v.Status.Hold; h != nil {
		table.Row("Hold:", verbs.HoldInFull(s.Now(), h.Kind, h.Until.Time, h.By, h.Why))
	}
	if t := v.Status.Terms; t != nil {
		for _, row := range verbs.TermsInFull(t.Lifespan, t.LifespanSucceeded, t.Retain, t.LimitBytes, t.LimitInodes, t.LimitNotEnforced) {
			table.Row(row...)
		}
	}
	if v.Status.Bytes != nil {
		table.Row("Size:", verbs.SizeInFull(*v.Status.Bytes))
	}
	if v.Status.Inodes != nil {
		table.Row("Inodes:", fmt.Sprint(*v.Status.Inodes))
	}
	return table.Flush()
}

// statTime describes a time that is over, if it is known.
func (s *session) statTime(table *terminal.Table, name string, when *metav1.Time) {
	if t := at(when); !t.IsZero() {
		table.Row(name, verbs.Moment(t)+" ("+terminal.Ago(s.Now(), t)+")")
	}
}
