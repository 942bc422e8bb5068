package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

// StatFile describes a file, a directory or whatever else is at a path.
func (s *Session) StatFile(ctx context.Context, v Volume, ref string, asJSON bool) error {
	entry, path, err := v.entry(ctx, ref)
	switch {
	case err != nil:
		return err
	case asJSON:
		return s.WriteJSON(entry)
	}
	table := terminal.NewTable(s.Stdout)
	table.Row("Path:", "/"+terminal.Quote(path.String()))
	table.Row("Target:", v.Target+":"+FormatPath(path.String(), path.Ref()))
	table.Row("Type:", string(entry.Type))
	if entry.Type == api.Symlink {
		table.Row("Points to:", terminal.Quote(entry.Target))
	}
	table.Row("Size:", SizeInFull(entry.Size))
	table.Row("On the disk:", SizeInFull(entry.Allocated))
	table.Row("Mode:", strings.TrimSpace(entry.Mode+" ("+modeOf(entry)+")"))
	table.Row("Owner:", fmt.Sprintf("UID %d, GID %d", entry.UID, entry.GID))
	table.Row("Links:", fmt.Sprint(entry.Links))
	table.Row("Modified:", Moment(entry.ModTime)+" ("+terminal.Ago(s.Now(), entry.ModTime)+")")
	return table.Flush()
}

// SizeInFull returns a size for people and in bytes.
func SizeInFull(bytes int64) string {
	if bytes < 1024 {
		return terminal.Size(bytes)
	}
	return fmt.Sprintf("%s (%d bytes)", terminal.Size(bytes), bytes)
}
