package nodehold

import (
	"slices"
	"time"
)

const (
	// longest is how long a node is held after the last of the volumes that wait was retained, most how long in each window.
	longest = 10 * time.Minute
	most    = 20 * time.Minute
	window  = 2 * time.Hour
	// least is what each hold counts for. It bounds how often a node is written to.
	least = time.Minute
	// margin is what it may take until the end of a hold is written.
	margin = 15 * time.Second
	// clocksDiffer is by how much the clocks of two replicas may differ. What is noted of a later time was noted before the
	// clock was set back.
	clocksDiffer = time.Minute
)

// want is what a node says of itself.
type want struct {
	// heard: this replica hears the node. Else nothing is known of it.
	heard   bool
	volumes int
	// newest is when the last of the volumes was retained, zero if that is not known.
	newest time.Time
}

// decide returns the mark that a Node is to have. It does not know which annotations the Node has: set stays as it is
// during a hold, and is empty else.
func decide(m mark, w want, now time.Time) mark {
	now = now.UTC().Truncate(time.Second)
	next := mark{since: m.since, set: m.set, past: slices.Clone(m.past)}
	next.past = slices.DeleteFunc(next.past, func(s span) bool {
		return !s.to.After(now.Add(-window)) || s.from.After(now.Add(clocksDiffer))
	})
	if m.since.After(now.Add(clocksDiffer)) {
		next.since, next.set = time.Time{}, nil
		return next // what it has set goes first
	}
	spent := time.Duration(0)
	for _, s := range next.past {
		spent += s.to.Sub(later(s.from, now.Add(-window)))
	}
	switch {
	case next.held() && !keeps(next.since, spent, w, now):
		next.past = append(next.past, span{next.since, later(now, next.since.Add(least))})
		next.since, next.set = time.Time{}, nil
	case !next.held() && w.wanted(now) && spent+least <= most-margin:
		next.since = now
	}
	return next
}

// wanted reports whether the node is to be held, if it may.
func (w want) wanted(now time.Time) bool {
	return w.heard && w.volumes > 0 && !w.newest.IsZero() && now.Before(w.newest.Add(longest-margin))
}

// keeps reports whether a hold goes on.
func keeps(since time.Time, spent time.Duration, w want, now time.Time) bool {
	switch {
	case spent+now.Sub(since) >= most-margin:
		return false
	case !w.heard:
		return now.Before(since.Add(longest - margin))
	default:
		return w.wanted(now)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
