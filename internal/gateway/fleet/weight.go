package fleet

import "strings"

const (
	// mostBytes is about how long the entries of a page are in JSON, at most. A page of mostLimit usual entries
	// is shorter. With the longest names of pods and owners, and the longest reasons of people, it could be
	// six times as long, and 16 lists at once would take more memory than a gateway has.
	mostBytes = 8 << 20
	// bareBytes is how long an entry is in JSON, without the texts that others choose, and a row of a table with it.
	bareBytes = 1000
)

// weight is how long an entry is in JSON at most, in bytes, alone or in a table.
func (e *Entry) weight() int {
	v := &e.Volume
	bytes := bareBytes
	add := func(times int, texts ...string) {
		for _, text := range texts {
			// The others stand for themselves: what cannot be printed is in no entry.
			bytes += times * (len(text) + strings.Count(text, `"`) + strings.Count(text, `\`))
		}
	}
	add(4, v.Pod, v.Claim) // the volume's name begins with it, and each has a column
	add(2, v.PodUID, v.Node)
	add(1, v.Namespace, v.Volume, v.ID)
	bytes += 2 * maxLabel // the Job and the kind of the owner
	if o := v.Owner; o != nil {
		add(2, o.Kind, o.Name)
		add(1, o.NamespaceUID, o.UID, o.JobIndex)
	} else {
		add(2, v.Pod) // what is guessed of the owner is a part of it
	}
	if t := v.Terms; t != nil {
		add(1, t.Lifespan, t.LifespanSucceeded, t.Retain)
	}
	if a := v.Array; a != nil {
		add(2, a.Pool, a.Class, a.Size)
	}
	if h := v.Hold; h != nil {
		add(2, h.By, h.Why) // the reason of a pin is in the spec and in the status
	}
	if g := e.Gone; g != nil {
		add(2, g.By, g.Reason, g.Promised, g.Kept)
		add(1, g.Why)
	}
	return bytes
}

// maxLabel is the longest value of a label.
const maxLabel = 63

// fitting returns how many of the first count entries a page has room for: at least one, if there is one.
func fitting(count int, at func(int) *Entry) int {
	for i, sum := 0, 0; i < count; i++ {
		if sum += at(i).weight(); sum > mostBytes && i > 0 {
			return i
		}
	}
	return count
}
