package store

import (
	"container/heap"

	"go.etcd.io/bbolt"
)

// ring says which tombstones are kept. One half are the newest ones. Of the other half each namespace has a
// share: when it is full, the namespace with most of them loses its oldest one. So the volumes of one namespace
// flush no more of another's than a half, and namespaces that are long gone keep no more than the other half.
//
// It is known in memory alone, as the last successful commit left it. What it loses leaves the file with the
// next tombstones. The zero ring keeps none, and has to be loaded.
type ring struct {
	most int
	// loaded: it is what the file has.
	loaded bool
	// recent are the newest ones, the oldest of them first.
	recent []recentGrave
	named  map[string]*plot
	older  plots
	// olders is how many older ones there are.
	olders int
	// surplus are those that are to leave the file, in the order in which they were lost; hidden has the same.
	surplus []uint64
	hidden  map[uint64]struct{}
}

type recentGrave struct {
	number uint64
	plot   *plot
}

// plot has the tombstones of a namespace.
type plot struct {
	namespace string
	recent    int
	// older are their numbers, in order. place is that in the heap, while there are any.
	older []uint64
	place int
}

// forget begins anew, with at most so many tombstones.
func (r *ring) forget(most int) { *r = ring{most: most} }

// load takes over what the file has, unless that is known.
func (r *ring) load(tx *bbolt.Tx) {
	if r.loaded {
		return
	}
	r.forget(r.most)
	r.loaded = true
	b := tx.Bucket(goneBucket)
	if b == nil {
		return
	}
	cursor := b.Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if number := numberOf(key); number != 0 {
			r.add(number, namespaceOf(key, value))
		}
	}
}

// namespaceOf returns the namespace of a tombstone; empty if it cannot be read.
func namespaceOf(key, value []byte) string {
	body, err := openValue(key, value)
	if err != nil {
		return ""
	}
	var stored struct {
		Record struct {
			Namespace string `cbor:"2,keyasint,omitempty"`
		} `cbor:"2,keyasint"`
	}
	if err := decoding.Unmarshal(body, &stored); err != nil {
		return ""
	}
	return stored.Record.Namespace
}

// add adds the newest tombstone.
func (r *ring) add(number uint64, namespace string) {
	p := r.named[namespace]
	if p == nil {
		if r.named == nil {
			r.named = map[string]*plot{}
		}
		p = &plot{namespace: namespace}
		r.named[namespace] = p
	}
	p.recent++
	r.recent = append(r.recent, recentGrave{number, p})
	half := r.most / 2
	if len(r.recent) <= half {
		return
	}
	r.age()
	if r.olders > r.most-half {
		r.lose()
	}
}

// age makes the oldest of the recent ones an older one.
func (r *ring) age() {
	first := r.recent[0]
	r.recent = r.recent[1:]
	p := first.plot
	p.recent--
	p.older = append(p.older, first.number)
	r.olders++
	if len(p.older) == 1 {
		heap.Push(&r.older, p)
	} else {
		heap.Fix(&r.older, p.place)
	}
}

// lose takes the oldest one of the namespace that has most of the older ones.
func (r *ring) lose() {
	p := r.older[0]
	number := p.older[0]
	p.older = p.older[1:]
	r.olders--
	switch {
	case len(p.older) > 0:
		heap.Fix(&r.older, 0)
	default:
		heap.Pop(&r.older)
		p.older = nil
		if p.recent == 0 {
			delete(r.named, p.namespace)
		}
	}
	if r.hidden == nil {
		r.hidden = map[uint64]struct{}{}
	}
	r.hidden[number] = struct{}{}
	r.surplus = append(r.surplus, number)
}

// left notes that the first of the surplus have left the file.
func (r *ring) left(count int) {
	for _, number := range r.surplus[:count] {
		delete(r.hidden, number)
	}
	if r.surplus = r.surplus[count:]; len(r.surplus) == 0 {
		r.surplus, r.hidden = nil, nil // there may have been many
	}
}

// shows reports whether a list shows a tombstone that is in the file.
func (r *ring) shows(number uint64) bool {
	_, hidden := r.hidden[number]
	return !hidden
}

// plots is a heap, for the package container/heap: the namespace with most older tombstones comes first, and of
// several the one whose first is the oldest.
type plots []*plot

func (p plots) Len() int { return len(p) }

func (p plots) Less(i, j int) bool {
	if a, b := len(p[i].older), len(p[j].older); a != b {
		return a > b
	}
	return p[i].older[0] < p[j].older[0]
}

func (p plots) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].place, p[j].place = i, j
}

// Push adds a plot at the end.
func (p *plots) Push(x any) {
	added := x.(*plot)
	added.place = len(*p)
	*p = append(*p, added)
}

// Pop takes the last one out.
func (p *plots) Pop() any {
	last := len(*p) - 1
	taken := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return taken
}
