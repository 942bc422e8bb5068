package verbs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

const (
	// mostGroups bounds the different lines that are told apart, and mostMembers the volumes of all of them together.
	mostGroups  = 10_000
	mostMembers = 1_000_000
)

// foundGroups groups equal lines over volumes.
type foundGroups struct {
	out         io.Writer
	shown, json bool
	groups      map[string]*grepGroup
	members     int
	// others are matches that are in no group.
	others int
}

// grepGroup is a line that volumes have.
type grepGroup struct {
	Text string `json:"text"`
	// Volumes have it, in Lines lines, the first one at Since. Such is one of the places.
	Volumes int       `json:"volumes"`
	Lines   int       `json:"lines"`
	Since   time.Time `json:"since,omitzero"`
	Such    string    `json:"such"`

	in map[string]struct{}
}

func newFoundGroups(out io.Writer, shown, json bool) *foundGroups {
	return &foundGroups{out: out, shown: shown, json: json, groups: map[string]*grepGroup{}}
}

func (g *foundGroups) add(in GrepVolume, f *api.GrepFound) error {
	group := g.groups[f.Text]
	if group == nil {
		if len(g.groups) >= mostGroups {
			g.others++
			return nil
		}
		group = &grepGroup{Text: f.Text, in: map[string]struct{}{}}
		g.groups[f.Text] = group
	}
	group.Lines++
	if since := at(in, f); group.Such == "" || before(since, group.Since) {
		group.Since, group.Such = since, fmt.Sprintf("%s:%d", place(in, f), f.Line)
	}
	name := in.Namespace + "/" + in.Name
	if _, known := group.in[name]; known {
		return nil
	}
	if g.members >= mostMembers {
		g.others++
		return nil
	}
	g.members++
	group.in[name] = struct{}{}
	group.Volumes++
	return nil
}

func (g *foundGroups) end(end *api.GrepEnd) error {
	all := slices.SortedFunc(maps.Values(g.groups), func(a, b *grepGroup) int {
		return cmp.Or(cmp.Compare(b.Volumes, a.Volumes), cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Text, b.Text))
	})
	for _, group := range all {
		if err := g.write(group); err != nil {
			return err
		}
	}
	if g.json {
		return (&foundJSON{g.out}).end(end)
	}
	if g.others > 0 {
		_, err := fmt.Fprintf(g.out, "%d more matches, in too many different lines or volumes\n", g.others)
		return err
	}
	return nil
}

// write writes a group: first how many volumes have the line, and then the line.
func (g *foundGroups) write(group *grepGroup) error {
	if g.json {
		return writeLine(g.out, group)
	}
	since := ""
	if !group.Since.IsZero() {
		since = " since " + Moment(group.Since)
	}
	_, err := fmt.Fprintf(g.out, "%s%s, %s, the first in %s\n    %s\n", counted(group.Volumes, "volume", "volumes"), since,
		counted(group.Lines, "line", "lines"), terminal.Clean(group.Such), shownText(&api.GrepFound{Text: group.Text}, g.shown))
	return err
}
