package volume

import (
	"cmp"
	"strings"
	"time"
)

// Description is what is known of a volume.
type Description struct {
	Record Record
	// Size is what a retained volume takes; zero while that is not known.
	Size Size
	// Deadline is when a retained volume goes if the disk pressure stays as it is. Early says that
	// the pressure makes this earlier than the end of its lifespan.
	Deadline time.Time
	Early    bool
}

// Key orders the retained volumes: by the time of their unpublish on the wall clock, as people see
// it, and then by their ID. The zero Key is before all others.
type Key struct {
	Unpublished time.Time
	ID          ID
}

// Compare returns -1 if k is before l, 0 if both are equal, and 1 else.
func (k Key) Compare(l Key) int {
	// Round drops the monotonic reading.
	return cmp.Or(k.Unpublished.Round(0).Compare(l.Unpublished.Round(0)), strings.Compare(string(k.ID), string(l.ID)))
}

// IsZero reports whether k is the zero Key.
func (k Key) IsZero() bool { return k == Key{} }

// Key is where the volume stands among all that are retained.
func (r Record) Key() Key { return Key{r.Unpublished.Round(0), r.ID} }

// Selection says which retained volumes a list contains. A zero field selects all.
type Selection struct {
	Namespace string
	PodName   string
	Pod       PodUID
	// Since leaves out volumes that were retained before.
	Since time.Time
	// Before continues a list: only volumes whose key is smaller.
	Before Key
	// Limit is how many volumes the page may hold. It is at least 1.
	Limit int
}

// Selects reports whether the list contains a retained volume.
func (s Selection) Selects(r Record) bool {
	switch {
	case s.Namespace != "" && s.Namespace != r.Namespace, s.PodName != "" && s.PodName != r.PodName, s.Pod != "" && s.Pod != r.Pod:
		return false
	case !s.Before.IsZero() && r.Key().Compare(s.Before) >= 0:
		return false
	}
	return !r.Key().Unpublished.Before(s.Since.Round(0))
}

// Page is a part of a list of retained volumes, the newest first.
type Page struct {
	Volumes []Description
	// Next continues the list when it is the Before of the next Selection. It is the zero Key at the
	// end of the list. A page may hold fewer volumes than its limit, or none, and not be the last.
	Next Key
}
