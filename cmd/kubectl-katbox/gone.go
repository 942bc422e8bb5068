package main

import (
	"io"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
)

// goneTable returns what writes volumes that are gone as a table.
func (l *listing) goneTable() func([]resource.RetainedVolume) error {
	wide := l.output == outputWide
	var table *terminal.Table
	return func(page []resource.RetainedVolume) error {
		if table == nil {
			table = l.s.newGoneTable(l.s.Stdout, wide)
		}
		for i := range page {
			l.s.goneRow(table, &page[i], wide)
		}
		return table.Flush()
	}
}

// newGoneTable returns a table of volumes that are gone.
func (s *session) newGoneTable(w io.Writer, wide bool) *terminal.Table {
	var header []string
	if s.namespace == "" {
		header = append(header, "NAMESPACE")
	}
	header = append(header, "NAME", "VOLUME", "OWNER", "OUTCOME", "SIZE", "GONE", "KEPT")
	if wide {
		header = append(header, "POD", "NODE", "POD-UID")
	}
	return terminal.NewTable(w, append(header, "WHY")...)
}

// goneRow adds a volume that is gone.
func (s *session) goneRow(table *terminal.Table, v *resource.RetainedVolume, wide bool) {
	g := v.Status.Gone
	if g == nil {
		return // the gateway was asked for no others
	}
	var cells []string
	if s.namespace == "" {
		cells = append(cells, v.Namespace)
	}
	cells = append(cells, v.Name, verbs.Known(v.Spec.VolumeName), owner(v.Spec.Owner), verbs.Known(v.Status.Outcome), size(v),
		terminal.Ago(s.Now(), g.At.Time), duration.KeptOf(g.Kept, g.Promised))
	if wide {
		cells = append(cells, verbs.Known(v.Spec.PodName), v.Spec.NodeName, verbs.Known(v.Spec.PodUID))
	}
	table.Row(append(cells, verbs.WhyGone(s.Now(), g.Reason, g.By, g.Why, at(v.Status.ArchivedUntil)))...)
}
