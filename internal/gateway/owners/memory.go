package owners

import "sync"

// memory keeps the values that were put or got last: at most as many as its bounds, at least about half
// of that. It has two generations. When the young one is full it becomes the old one, and what was
// not read from the old one in the meantime is dropped.
type memory[K comparable, V any] struct {
	// most bounds how many values there are, mostBytes what they take as sizeOf says.
	most, mostBytes int
	sizeOf          func(K, V) int

	mu         sync.Mutex
	young, old map[K]V
	// bytes is what the young ones take.
	bytes int
}

func newMemory[K comparable, V any](most, mostBytes int, sizeOf func(K, V) int) *memory[K, V] {
	return &memory[K, V]{most: most, mostBytes: mostBytes, sizeOf: sizeOf, young: map[K]V{}}
}

// get returns a value, and keeps it young.
func (m *memory[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.young[key]; ok {
		return v, true
	}
	v, ok := m.old[key]
	if ok {
		m.keep(key, v)
	}
	return v, ok
}

// put keeps a value.
func (m *memory[K, V]) put(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(key, v)
}

// keep is put for who holds the lock.
func (m *memory[K, V]) keep(key K, v V) {
	size := m.sizeOf(key, v)
	if was, ok := m.young[key]; ok {
		m.bytes -= m.sizeOf(key, was)
	} else if len(m.young) >= m.most/2 || m.bytes+size > m.mostBytes/2 {
		m.young, m.old, m.bytes = map[K]V{}, m.young, 0
	}
	m.young[key] = v
	m.bytes += size
	delete(m.old, key)
}
