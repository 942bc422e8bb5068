package check

// ring holds things that are looked at in turn, without an end. The zero value
// is empty.
type ring[T comparable] struct {
	all    []T
	places map[T]int
	cursor int
}

func (r *ring[T]) add(t T) {
	if r.places == nil {
		r.places = make(map[T]int)
	}
	if r.has(t) {
		return
	}
	r.places[t] = len(r.all)
	r.all = append(r.all, t)
}

func (r *ring[T]) has(t T) bool {
	_, ok := r.places[t]
	return ok
}

// remove takes t out and reports whether it was there.
func (r *ring[T]) remove(t T) bool {
	i, ok := r.places[t]
	if !ok {
		return false
	}
	last := len(r.all) - 1
	r.all[i] = r.all[last]
	r.places[r.all[i]] = i
	delete(r.places, t)
	var none T
	r.all[last] = none // or the array would keep it alive
	r.all = r.all[:last]
	return true
}

// next returns the n whose turn it is, each at most once.
func (r *ring[T]) next(n int) []T {
	n = min(n, len(r.all))
	turn := make([]T, 0, n)
	for range n {
		r.cursor++
		if r.cursor >= len(r.all) {
			r.cursor = 0
		}
		turn = append(turn, r.all[r.cursor])
	}
	return turn
}
