package pools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rule says which pool takes a new volume, among those that have room.
type Rule string

// The rules.
const (
	// Weighted: the least used by volumes, allocation and promises together.
	Weighted Rule = "Weighted"
	// MostAvailable: the most free space.
	MostAvailable Rule = "MostAvailable"
	// Even: the fewest volumes.
	Even Rule = "Even"
	// Linear: one after the other, by name.
	Linear Rule = "Linear"
)

// Candidate is a pool that may take a new volume.
type Candidate struct {
	Name string
	// Refuses says why it takes none, however small; empty when it takes some.
	Refuses string
	// Full: it refuses because it is nearly full, and for no other reason.
	Full bool
	// Total, Available and Provisioned are bytes, as the array has said last; Reserved is what was
	// promised since.
	Total, Available, Provisioned, Reserved int64
	// Volumes is how many it has, with those that are being made.
	Volumes int
	// Headroom is bytes that are promised to no volume.
	Headroom int64
	// Overcommit is how many times its size may be promised to volumes; 0 sets no limit.
	Overcommit float64
}

// Room returns the bytes of the largest volume that the pool takes.
func (c Candidate) Room() int64 {
	if c.Refuses != "" {
		return 0
	}
	room := c.Available - c.Headroom - c.Reserved
	if c.Overcommit > 0 {
		room = min(room, int64(c.Overcommit*float64(c.Total))-c.Headroom-c.Provisioned-c.Reserved)
	}
	return max(room, 0)
}

// Lacking returns by how many bytes a volume is larger than what is free, or may be promised; negative if it is
// smaller.
func (c Candidate) Lacking(bytes int64) int64 {
	lacking := bytes - (c.Available - c.Headroom - c.Reserved)
	if c.Overcommit > 0 {
		lacking = max(lacking, bytes-(int64(c.Overcommit*float64(c.Total))-c.Headroom-c.Provisioned-c.Reserved))
	}
	return lacking
}

// used is the rule Weighted: 1000 volumes count as much as a pool that is full, or promised once.
func (c Candidate) used() float64 {
	total := float64(max(c.Total, 1))
	return float64(c.Volumes)/1000 + float64(c.Total-c.Available)/total + float64(c.Provisioned+c.Reserved)/total
}

// Allocate returns the pool that takes a volume of a size in bytes. Equal ones are taken by name. Where
// none does, it returns why not, for each.
func Allocate(rule Rule, candidates []Candidate, bytes int64) (pool, why string) {
	var fit []Candidate
	var refused []string
	for _, c := range slices.SortedFunc(slices.Values(candidates), func(a, b Candidate) int { return cmp.Compare(a.Name, b.Name) }) {
		if reason := c.refusal(bytes); reason != "" {
			refused = append(refused, fmt.Sprintf("pool %s: %s", c.Name, reason))
			continue
		}
		fit = append(fit, c)
	}
	if len(fit) == 0 {
		return "", strings.Join(refused, "; ")
	}
	return slices.MinFunc(fit, rule.compare).Name, ""
}

// compare orders pools, the one that is to be taken first.
func (r Rule) compare(a, b Candidate) int {
	switch r {
	case MostAvailable:
		return cmp.Compare(b.Room(), a.Room())
	case Even:
		return cmp.Compare(a.Volumes, b.Volumes)
	case Linear:
		return cmp.Compare(a.Name, b.Name)
	default:
		return cmp.Compare(a.used(), b.used())
	}
}

// refusal says why the pool does not take a volume of a size; empty if it does.
func (c Candidate) refusal(bytes int64) string {
	switch {
	case c.Refuses != "":
		return c.Refuses
	case bytes <= c.Room():
		return ""
	}
	reason := fmt.Sprintf("%s free", inGiB(c.Available))
	if c.Reserved > 0 {
		reason += fmt.Sprintf(", of which %s are reserved for volumes that are being made", inGiB(c.Reserved))
	}
	if c.Headroom > 0 {
		reason += fmt.Sprintf(", %s are kept free", inGiB(c.Headroom))
	}
	if c.Overcommit > 0 {
		reason += fmt.Sprintf(", %s promised of at most %s", inGiB(c.Provisioned+c.Reserved), inGiB(int64(c.Overcommit*float64(c.Total))))
	}
	return reason + fmt.Sprintf("; %s are needed", inGiB(bytes))
}

func inGiB(bytes int64) string { return fmt.Sprintf("%.4g GiB", float64(bytes)/(1<<30)) }
