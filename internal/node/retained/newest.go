package retained

import (
	"container/heap"

	"github.com/katbox/katbox/internal/model/volume"
)

// indexes reports whether lists contain an entry. Volumes that are being deleted are in none.
func (q *Queue) indexes(n number) bool {
	return q.table.fate(n).phase == volume.Retained
}

// Newest lists the retained volumes that are selected, the newest first, up to the limit. It looks
// at no more than atMost volumes; limit and atMost are taken to be at least 1. next continues the list, as the Before of
// the next selection; it is the zero Key at the end.
func (q *Queue) Newest(s volume.Selection, atMost int) (page []Asleep, next volume.Key) {
	m, f := q.index.newest(s), q.table.filter(s)
	var last number
	for looked := 0; len(m.cursors) > 0; looked++ {
		n := m.cursors[0].number
		if q.table.wall(n).Before(s.Since.Round(0)) {
			break // and so are all that follow
		}
		if looked > 0 && (looked >= atMost || len(page) >= s.Limit) {
			return page, q.table.key(last)
		}
		if last = n; f.matches(n) {
			page = append(page, q.look(n))
		}
		m.next()
	}
	return page, volume.Key{}
}

// merge goes through several lists at once, the newest entry first.
type merge struct {
	table   *table
	cursors []cursor
}

// cursor is the next entry of a list.
type cursor struct {
	sortable
	position
	list *list
}

// newest begins a merge of the lists that may have the selected volumes.
func (x *index) newest(s volume.Selection) *merge {
	m := &merge{table: x.table}
	begin := func(l *list) {
		if l == nil || !l.space.mayBeIn(&s) {
			return
		}
		c := cursor{position: l.end(), list: l}
		if !s.Before.IsZero() {
			c.position = x.since(l, s.Before)
		}
		if n := l.before(&c.position); n != 0 {
			c.sortable = x.table.sortable(n)
			m.cursors = append(m.cursors, c)
		}
	}
	if s.Namespace == "" && !s.NoNamespace {
		for _, l := range x.lists {
			begin(l)
		}
	} else {
		for _, l := range x.named[s.Namespace] {
			begin(l)
		}
		if s.Namespace != volume.OtherNamespaces {
			for _, l := range x.named[volume.OtherNamespaces] {
				begin(l)
			}
		}
	}
	heap.Init(m)
	return m
}

// next goes on to the next entry.
func (m *merge) next() {
	c := &m.cursors[0]
	if n := c.list.before(&c.position); n == 0 {
		heap.Pop(m)
	} else {
		c.sortable = m.table.sortable(n)
		heap.Fix(m, 0)
	}
}

func (m *merge) Len() int { return len(m.cursors) }
func (m *merge) Less(i, j int) bool {
	return m.table.compare(m.cursors[j].sortable, m.cursors[i].sortable) < 0
}
func (m *merge) Swap(i, j int) { m.cursors[i], m.cursors[j] = m.cursors[j], m.cursors[i] }
func (m *merge) Push(c any)    { m.cursors = append(m.cursors, c.(cursor)) }

func (m *merge) Pop() any {
	last := len(m.cursors) - 1
	c := m.cursors[last]
	m.cursors = m.cursors[:last]
	return c
}
