package fakevpsa

import (
	"cmp"
	"slices"
)

type object interface {
	comparable
	id() string
	label() string
}

// table holds the objects of one kind in the order of their IDs. An object in a table is never
// changed: a changed copy takes its place. So answers can be written without the lock.
type table[T object] struct {
	items []T
	names map[string]T
}

func (t *table[T]) find(id string) (int, bool) {
	return slices.BinarySearchFunc(t.items, id, func(o T, id string) int { return cmp.Compare(o.id(), id) })
}

// get returns nil when there is none.
func (t *table[T]) get(id string) T {
	var none T
	if i, ok := t.find(id); ok {
		return t.items[i]
	}
	return none
}

// named returns nil when there is none.
func (t *table[T]) named(label string) T { return t.names[label] }

func (t *table[T]) put(o T) {
	if t.names == nil {
		t.names = map[string]T{}
	}
	i, ok := t.find(o.id())
	if ok {
		t.unname(t.items[i])
		t.items[i] = o
	} else {
		t.items = slices.Insert(t.items, i, o)
	}
	t.names[o.label()] = o
}

func (t *table[T]) remove(id string) {
	if i, ok := t.find(id); ok {
		t.unname(t.items[i])
		t.items = slices.Delete(t.items, i, i+1)
	}
}

func (t *table[T]) unname(o T) {
	if t.names[o.label()] == o {
		delete(t.names, o.label())
	}
}

// all returns the objects of now.
func (t *table[T]) all() []T { return slices.Clone(t.items) }
