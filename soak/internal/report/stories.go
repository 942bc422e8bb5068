package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/katbox/katbox/soak/internal/history"
)

// mostStories is how many stories are told.
const mostStories = 10

// repeated is a violation and how often the same promise was broken to the same
// volume. The first time tells most about the cause.
type repeated struct {
	violation
	times int
	// rank is how many stories of the same promise are older.
	rank int
}

// again says how often the same happened again; empty if it did not.
func (s repeated) again() string {
	switch s.times {
	case 1:
		return ""
	case 2:
		return "once more"
	default:
		return fmt.Sprintf("%d times more", s.times-1)
	}
}

// stories makes one story of what happened to one volume again and again, and
// picks a few that are different. More is how many are left out.
func (x *Result) stories() (told []repeated, more int) {
	all := storiesOf(x.Violations)
	told = all[:min(mostStories, len(all))]
	return told, len(all) - len(told)
}

func storiesOf(all []violation) []repeated {
	type key struct {
		promise history.Promise
		volume  string
		what    string
	}
	var list []repeated
	known := make(map[key]int)
	for _, v := range all {
		k := key{promise: v.Promise, volume: v.Volume}
		if v.Volume == "" {
			k.what = v.What
		}
		i, ok := known[k]
		if !ok {
			i = len(list)
			known[k] = i
			list = append(list, repeated{violation: v})
		}
		list[i].times++
	}
	// One of each promise comes first, then the second of each, and so on. But
	// a dead driver explains all the rest.
	rank := map[history.Promise]int{history.Lives: -mostStories}
	for i := range list {
		list[i].rank = rank[list[i].Promise]
		rank[list[i].Promise]++
	}
	slices.SortStableFunc(list, func(a, b repeated) int { return cmp.Compare(a.rank, b.rank) })
	return list
}
