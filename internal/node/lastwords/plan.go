package lastwords

import (
	"math"
	"slices"

	"github.com/katbox/katbox/internal/lib/crilog"
)

// part is what is kept of a file: its end.
type part struct {
	*file
	// from is where it begins, and size how large the file is. Nothing is kept if both are the same.
	from, size int64
}

// whole says that only all of a file makes sense: a compressed one has no end to begin at.
func (p part) whole() bool {
	n, _ := crilog.ParseName(p.file.file)
	return n.Compressed
}

// plan chooses which parts of the files are kept, within a number of bytes for all of them together. The files of each
// container are together, its newest first.
//
// The newest file of each container comes first. Where these have not enough room, each gets an equal share, and what a
// smaller one leaves goes to the larger ones: a container that prints without end takes nothing from one that says why
// it failed. What is left goes to the files before, in the same way. Behind a file that is cut no older one is kept.
func plan(files []part, limit int64) {
	containers := map[string][]*part{}
	most := 0
	for i := range files {
		name := files[i].container
		containers[name] = append(containers[name], &files[i])
		most = max(most, len(containers[name]))
	}
	cut := map[string]bool{}
	for rank := range most {
		var those []*part
		for name, of := range containers {
			switch {
			case rank >= len(of):
			case cut[name]:
				of[rank].from = of[rank].size
			default:
				those = append(those, of[rank])
			}
		}
		each := share(those, limit)
		for _, p := range those {
			take := min(p.size, each)
			if take < p.size {
				cut[p.container] = true
				if p.whole() {
					take = 0
				}
			}
			p.from = p.size - take
			limit -= take
		}
	}
}

// share returns how many bytes each file may have, so that all together have no more than the limit.
func share(of []*part, limit int64) int64 {
	sizes := make([]int64, len(of))
	for i, p := range of {
		sizes[i] = p.size
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		each := limit / int64(len(sizes)-i)
		if size > each {
			return each
		}
		limit -= size
	}
	return math.MaxInt64
}
