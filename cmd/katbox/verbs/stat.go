package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

func statVerb() *cobra.Command {
	var c choice
	verb := &cobra.Command{
		Use:   "stat TARGET[:PATH]",
		Short: "describes a volume or a file in it",
		Args:  verbs.Arguments(1, 1),
	}
	c.define(verb.Flags())
	output := verb.Flags().StringP("output", "o", "", "json")
	verb.RunE = onNode(func(ctx context.Context, s *session, args []string) error {
		t, err := parseTarget(args[0])
		switch {
		case err != nil:
			return err
		case *output != verbs.OutputTable && *output != verbs.OutputJSON:
			return verbs.WrongUsage("--output %s is not json", verbs.Quoted(*output))
		}
		v, err := c.choose(ctx, s, t)
		if err != nil {
			return err
		}
		if !t.hasPath {
			return s.statVolume(v, *output == verbs.OutputJSON)
		}
		return s.StatFile(ctx, s.files(v, v.ID), t.path, *output == verbs.OutputJSON)
	})
	return verb
}

func (s *session) statVolume(v api.Volume, asJSON bool) error {
	if asJSON {
		return s.WriteJSON(v)
	}
	table := terminal.NewTable(s.Stdout)
	if v.Claim != "" {
		table.Row("Claim:", v.Claim)
		table.Row("Namespace:", verbs.Known(v.Namespace))
	} else {
		table.Row("Volume:", verbs.Known(v.Volume))
		table.Row("Namespace:", verbs.Known(v.Namespace))
		table.Row("Pod:", verbs.Known(v.Pod))
		table.Row("Pod UID:", verbs.Known(v.PodUID))
		table.Row("Service account:", verbs.Known(v.ServiceAccount))
	}
	table.Row("Node:", verbs.Known(v.Node))
	table.Row("ID:", v.ID)
	table.Row("Phase:", v.Phase)
	if v.Outcome != "" {
		table.Row("Outcome:", v.Outcome)
	}
	if t := at(v.PublishedAt); !t.IsZero() {
		table.Row("Published:", verbs.Moment(t)+" ("+terminal.Ago(s.Now(), t)+")")
	}
	if t := at(v.RetainedAt); !t.IsZero() {
		table.Row("Retained:", verbs.Moment(t)+" ("+terminal.Ago(s.Now(), t)+")")
	}
	if t := at(v.ExpiresAt); !t.IsZero() {
		expires := verbs.Moment(t) + " (" + terminal.In(s.Now(), t) + ")"
		if v.MayGoEarlier {
			expires += ", earlier than its lifespan: the disk fills up"
		}
		table.Row("Expires:", expires)
	}
	if t := at(v.ArchivedUntil); t.After(s.Now()) {
		table.Row("Archived:", "until "+verbs.Moment(t)+" ("+terminal.In(s.Now(), t)+")")
	}
	if h := v.Hold; h != nil {
		table.Row("Hold:", verbs.HoldInFull(s.Now(), h.Kind, h.Until, h.By, h.Why))
	}
	if t := v.Terms; t != nil {
		for _, row := range verbs.TermsInFull(t.Lifespan, t.LifespanSucceeded, t.Retain, t.LimitBytes, t.LimitInodes, t.LimitNotEnforced) {
			table.Row(row...)
		}
	}
	if v.Bytes != nil {
		table.Row("Size:", verbs.SizeInFull(*v.Bytes))
	}
	if v.Inodes != nil {
		table.Row("Inodes:", fmt.Sprint(*v.Inodes))
	}
	return table.Flush()
}
