package verbs

// Matches are the volumes that a target matches, as far as they are of interest. Logs are meant only where nothing else
// matches, unless they are named.
type Matches[V any] struct {
	// Most is how many are of interest, and Last that only the first one is.
	Most int
	Last bool

	files, logs []V
}

// Add adds the next one, the newest first, and reports whether no other is of interest.
func (m *Matches[V]) Add(v V, isLogs bool) (enough bool) {
	if m.Last {
		m.Most = 1
	}
	into := &m.files
	if isLogs {
		into = &m.logs
	}
	if len(*into) <= m.Most {
		*into = append(*into, v)
	}
	return len(m.files) > m.Most || m.Last && len(m.files) > 0
}

// Found returns those that are meant, and whether there are more than are of interest.
func (m *Matches[V]) Found() (found []V, more bool) {
	if found = m.files; len(found) == 0 {
		found = m.logs
	}
	if len(found) > m.Most {
		return found[:m.Most], true
	}
	return found, false
}
