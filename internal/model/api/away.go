package api

import (
	"fmt"
	"slices"
	"strings"
)

// What stands among the nodes of a list without being one: the archive, and the pools on remote arrays. No node has such a name.
const (
	TheArchive = "the archive"
	TheArrays  = "pools on arrays"
)

// IsNode reports whether a name that a list lacks is that of a node.
func IsNode(name string) bool { return name != TheArchive && name != TheArrays }

// Away says who did not answer: "1 of 3 nodes and the archive". There are all nodes, of which more are missing than have a name.
// one: it is a single node, or another single thing.
func Away(missing []string, more, all int) (who string, one bool) {
	var parts []string
	for _, name := range missing {
		if !IsNode(name) {
			parts = append(parts, name)
		}
	}
	nodes := len(missing) - len(parts) + more
	one = nodes+len(parts) == 1 && !slices.Contains(parts, TheArrays)
	if nodes > 0 {
		parts = slices.Insert(parts, 0, fmt.Sprintf("%d of %d nodes", nodes, max(nodes, all)))
	}
	return strings.Join(parts, " and "), one
}
