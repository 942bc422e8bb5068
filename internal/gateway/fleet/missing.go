package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

// status says how many nodes the page could ask.
func (l *list) status() Status {
	s := Status{Nodes: l.nodes.Count}
	missing := slices.Concat(l.before.Missing, l.away, l.skipped)
	asked, failed := make(map[string]bool, len(l.sources)), map[string]bool{}
	for _, source := range l.sources {
		asked[source.name] = true
		if !source.answered && !failed[source.name] {
			failed[source.name] = true
			missing = append(missing, Missing{Node: source.name, Reason: source.failure})
		}
	}
	for name := range asked {
		if !api.IsNode(name) {
			continue
		}
		if s.Asked++; !failed[name] {
			s.Answered++
		}
	}
	// What this list has said first stays, so that a name is on all further pages.
	slices.SortStableFunc(missing, byName)
	missing = slices.CompactFunc(missing, func(a, b Missing) bool { return a.Node == b.Node })
	if s.MissingMore = l.before.More; len(missing) > mostMissing {
		s.MissingMore = max(s.MissingMore, len(missing)-mostMissing)
		missing = missing[:mostMissing:mostMissing]
	}
	s.Missing = missing
	return s
}

// warning says which nodes are missing, and what else.
func (s Status) warning() string {
	var all []string
	var nodes []Missing
	for _, m := range s.Missing {
		if all = append(all, m.Node); api.IsNode(m.Node) {
			nodes = append(nodes, m)
		}
	}
	who, one := api.Away(all, s.MissingMore, s.Nodes)
	named := names(nodes, s.MissingMore)
	if named != "" {
		named = " (" + named + ")"
	}
	if one {
		return fmt.Sprintf("%s did not answer%s; its volumes are not in this list", who, named)
	}
	return fmt.Sprintf("%s did not answer%s; their volumes are not in this list", who, named)
}

// byName compares names; those that are no nodes come first.
func byName(a, b Missing) int {
	switch isNode := api.IsNode(a.Node); {
	case isNode == api.IsNode(b.Node):
		return strings.Compare(a.Node, b.Node)
	case isNode:
		return 1
	}
	return -1
}
