package fleet

// mostBytes is about how long the entries of a page are in JSON, at most. A page of mostLimit entries is
// shorter, unless people have given long reasons for what they decided: with those it could be four times as
// long, and 16 lists at once would take more memory than a gateway has.
const mostBytes = 8 << 20

// weight is about how long an entry is in JSON, in bytes. Without the texts of people that is a KiB at most.
func (e *Entry) weight() int {
	bytes := 1 << 10
	if h := e.Volume.Hold; h != nil {
		bytes += len(h.By) + 2*len(h.Why) // the reason of a pin is in the spec and in the status
	}
	if g := e.Gone; g != nil {
		bytes += len(g.By) + len(g.Why)
	}
	return bytes
}

// fitting returns how many of the first count entries a page has room for: at least one, if there is one.
func fitting(count int, at func(int) *Entry) int {
	for i, sum := 0, 0; i < count; i++ {
		if sum += at(i).weight(); sum > mostBytes && i > 0 {
			return i
		}
	}
	return count
}
