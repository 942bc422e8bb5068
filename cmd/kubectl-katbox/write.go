package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/model/terminal"
)

// writer writes a list page by page.
type writer struct {
	write func([]resource.RetainedVolume) error
	end   func() error
}

// writer returns what writes in the form of --output.
func (l *listing) writer() writer {
	out, nothing := l.s.Stdout, func() error { return nil }
	switch l.output {
	case outputJSON:
		items := verbs.NewItems[resource.RetainedVolume](out,
			fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{},"items":[`, resource.GroupVersion, resource.ListKind), "]}\n")
		return writer{items.Write, items.End}
	case outputYAML:
		return l.yaml()
	case outputName:
		return writer{func(page []resource.RetainedVolume) error {
			for i := range page {
				if _, err := fmt.Fprintln(out, terminal.Clean(page[i].Name)); err != nil {
					return err
				}
			}
			return nil
		}, nothing}
	}
	if l.gone {
		return writer{l.goneTable(), nothing}
	}
	var table volumeTable
	return writer{func(page []resource.RetainedVolume) error {
		if table.Table == nil {
			table = newVolumeTable(out, l.s, l.output == outputWide)
		}
		for i := range page {
			table.row(&page[i])
		}
		return table.Flush()
	}, nothing}
}

// yaml returns what writes the list as one document.
func (l *listing) yaml() writer {
	begun := false
	begin := func() error {
		if begun {
			return nil
		}
		begun = true
		_, err := fmt.Fprintf(l.s.Stdout, "apiVersion: %s\nkind: %s\nmetadata: {}\nitems:\n", resource.GroupVersion, resource.ListKind)
		return err
	}
	write := func(page []resource.RetainedVolume) error {
		if err := begin(); err != nil {
			return err
		}
		for i := range page {
			text, err := yaml.Marshal(&page[i])
			if err != nil {
				return err
			}
			indent := "- "
			for line := range strings.Lines(string(text)) {
				// The encoder escapes control characters alone.
				if _, err := fmt.Fprintln(l.s.Stdout, indent+terminal.Clean(strings.TrimSuffix(line, "\n"))); err != nil {
					return err
				}
				indent = "  "
			}
		}
		return nil
	}
	end := func() error {
		if begun {
			return nil
		}
		_, err := fmt.Fprintf(l.s.Stdout, "apiVersion: %s\nkind: %s\nmetadata: {}\nitems: []\n", resource.GroupVersion, resource.ListKind)
		return err
	}
	return writer{write, end}
}
