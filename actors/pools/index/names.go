package index

import (
	"maps"
	"slices"
)

// names are sorted names. They are sorted at the first question and kept so from then on.
type names struct {
	sorted []string
	valid  bool
}

func (n *names) add(name string) {
	if !n.valid {
		return
	}
	if i, found := slices.BinarySearch(n.sorted, name); !found {
		n.sorted = slices.Insert(n.sorted, i, name)
	}
}

func (n *names) remove(name string) {
	if i, found := slices.BinarySearch(n.sorted, name); n.valid && found {
		n.sorted = slices.Delete(n.sorted, i, i+1)
	}
}

// after returns the names that come after one.
func after[V any](n *names, all map[string]V, last string) []string {
	if !n.valid {
		n.sorted, n.valid = slices.Sorted(maps.Keys(all)), true
	}
	i, found := slices.BinarySearch(n.sorted, last)
	if found {
		i++
	}
	return n.sorted[i:]
}
