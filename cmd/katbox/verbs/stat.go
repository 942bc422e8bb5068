package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/terminal"
)

var statVerb = verb{
	name:      "stat",
	arguments: "TARGET[:PATH]",
	summary:   "describes a volume or a file in it",
	least:     1, most: 1,
	define: func(flags *pflag.FlagSet) action {
		var c choice
		c.define(flags)
		output := flags.StringP("output", "o", "", "json")
		return func(ctx context.Context, s *session, args []string) error {
			t, err := parseTarget(args[0])
			switch {
			case err != nil:
				return err
			case *output != outputTable && *output != outputJSON:
				return wrongUsage("--output %s is not json", quoted(*output))
			}
			v, err := c.choose(ctx, s, t)
			if err != nil {
				return err
			}
			if !t.hasPath {
				return s.statVolume(v, *output == outputJSON)
			}
			return s.statFile(ctx, v, t.path, *output == outputJSON)
		}
	},
}

func (s *session) statVolume(v api.Volume, asJSON bool) error {
	if asJSON {
		return s.writeJSON(v)
	}
	table := terminal.NewTable(s.stdout)
	table.Row("Volume:", known(v.Volume))
	table.Row("Namespace:", known(v.Namespace))
	table.Row("Pod:", known(v.Pod))
	table.Row("Pod UID:", v.PodUID)
	table.Row("Service account:", known(v.ServiceAccount))
	table.Row("Node:", known(v.Node))
	table.Row("ID:", v.ID)
	table.Row("Phase:", v.Phase)
	if t := at(v.PublishedAt); !t.IsZero() {
		table.Row("Published:", moment(t)+" ("+terminal.Ago(s.now(), t)+")")
	}
	if t := at(v.RetainedAt); !t.IsZero() {
		table.Row("Retained:", moment(t)+" ("+terminal.Ago(s.now(), t)+")")
	}
	if t := at(v.ExpiresAt); !t.IsZero() {
		expires := moment(t) + " (" + terminal.In(s.now(), t) + ")"
		if v.MayGoEarlier {
			expires += ", earlier than its lifespan: the disk fills up"
		}
		table.Row("Expires:", expires)
	}
	if v.Bytes != nil {
		table.Row("Size:", sizeInFull(*v.Bytes))
	}
	if v.Inodes != nil {
		table.Row("Inodes:", fmt.Sprint(*v.Inodes))
	}
	return table.Flush()
}

func (s *session) statFile(ctx context.Context, v api.Volume, ref string, asJSON bool) error {
	entry, path, err := s.entry(ctx, v.ID, ref)
	switch {
	case err != nil:
		return err
	case asJSON:
		return s.writeJSON(entry)
	}
	table := terminal.NewTable(s.stdout)
	table.Row("Path:", "/"+terminal.Quote(path.String()))
	table.Row("Target:", targetOf(v, path))
	table.Row("Type:", string(entry.Type))
	if entry.Type == api.Symlink {
		table.Row("Points to:", terminal.Quote(entry.Target))
	}
	table.Row("Size:", sizeInFull(entry.Size))
	table.Row("On the disk:", sizeInFull(entry.Allocated))
	table.Row("Mode:", strings.TrimSpace(entry.Mode+" ("+modeOf(entry)+")"))
	table.Row("Owner:", fmt.Sprintf("UID %d, GID %d", entry.UID, entry.GID))
	table.Row("Links:", fmt.Sprint(entry.Links))
	table.Row("Modified:", moment(entry.ModTime)+" ("+terminal.Ago(s.now(), entry.ModTime)+")")
	return table.Flush()
}

// targetOf returns a path in a volume as verbs take it.
func targetOf(v api.Volume, path paths.Path) string {
	return v.ID + ":" + argument(path.String(), path.Ref())
}

// sizeInFull returns a size for people and in bytes.
func sizeInFull(bytes int64) string {
	if bytes < 1024 {
		return terminal.Size(bytes)
	}
	return fmt.Sprintf("%s (%d bytes)", terminal.Size(bytes), bytes)
}
