package retained

import (
	"slices"

	"github.com/katbox/katbox/internal/model/volume"
)

// Changes returns another number than before if a volume has come or gone since, or the wall clock was stepped.
func (q *Queue) Changes() uint64 { return q.index.changes }

// Holdings returns how many retained volumes there are of each namespace, in no order. What it costs
// follows the namespaces that have changed since the last call. Volumes of too many namespaces are
// counted as [volume.OtherNamespaces] together.
func (q *Queue) Holdings() []volume.Holding {
	return slices.Clone(q.index.holdings.now(&q.table))
}

// holdings are counted again only where something has changed: to look up the first and the last
// volume of each of thousands of lists takes milliseconds.
type holdings struct {
	// all are those of the lists beside them.
	all   []volume.Holding
	lists []*list
	// changed are the lists whose holdings are to be counted again, or are new.
	changed map[*list]struct{}
}

// change notes that a volume came into a list, or left it.
func (h *holdings) change(l *list) {
	if l.changed {
		return
	}
	if h.changed == nil {
		h.changed = map[*list]struct{}{}
	}
	h.changed[l], l.changed = struct{}{}, true
}

// recount counts all lists again.
func (h *holdings) recount() {
	for _, l := range h.lists {
		h.change(l)
	}
}

// drop takes out a list that is empty.
func (h *holdings) drop(l *list) {
	delete(h.changed, l)
	if l.place == 0 {
		return
	}
	at, last := l.place-1, len(h.lists)-1
	h.all[at], h.lists[at] = h.all[last], h.lists[last]
	h.lists[at].place = at + 1
	h.all[last], h.lists[last] = volume.Holding{}, nil
	h.all, h.lists = h.all[:last], h.lists[:last]
}

// now counts what has changed.
func (h *holdings) now(t *table) []volume.Holding {
	for l := range h.changed {
		l.changed = false
		if l.place == 0 {
			h.all, h.lists = append(h.all, volume.Holding{}), append(h.lists, l)
			l.place = len(h.lists)
		}
		h.all[l.place-1] = volume.Holding{
			Namespace: l.space.namespace, NamespaceUID: l.space.namespaceUID, Verdict: l.space.verdict,
			Volumes: l.length, Newest: t.wall(l.last()), Oldest: t.wall(l.first()),
		}
	}
	clear(h.changed)
	return h.all
}
