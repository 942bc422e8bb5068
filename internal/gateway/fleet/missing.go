package fleet

import (
	"fmt"
	"slices"
	"strings"
)

// status says how many nodes the page could ask.
func (l *list) status() Status {
	s := Status{Nodes: l.nodes.Count}
	if l.cfg.Archive != nil {
		s.Nodes++
	}
	missing := slices.Concat(l.before.Missing, l.away, l.skipped)
	asked, failed := make(map[string]bool, len(l.sources)), map[string]bool{}
	for _, source := range l.sources {
		asked[source.name] = true
		if !source.answered && !failed[source.name] {
			failed[source.name] = true
			missing = append(missing, Missing{Node: source.name, Reason: source.failure})
		}
	}
	s.Asked, s.Answered = len(asked), len(asked)-len(failed)
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

// warning says which nodes are missing.
func (s Status) warning() string {
	named := names(s.Missing, s.MissingMore)
	if count := len(s.Missing) + s.MissingMore; count > 1 {
		return fmt.Sprintf("%d of %d nodes did not answer (%s); their volumes are not in this list", count, s.Nodes, named)
	}
	return fmt.Sprintf("1 of %d nodes did not answer (%s); its volumes are not in this list", s.Nodes, named)
}

func byName(a, b Missing) int { return strings.Compare(a.Node, b.Node) }
