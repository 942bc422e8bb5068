package retained

// order is a heap of entries, for the package container/heap. Each entry notes its place in the
// heap, from where it can be removed.
type order struct {
	table   *table
	numbers []number
	// before reports whether n comes before m.
	before func(n, m number) bool
}

func (o *order) Len() int           { return len(o.numbers) }
func (o *order) Less(i, j int) bool { return o.before(o.numbers[i], o.numbers[j]) }

func (o *order) Swap(i, j int) {
	o.numbers[i], o.numbers[j] = o.numbers[j], o.numbers[i]
	o.table.entry(o.numbers[i]).place = uint32(i)
	o.table.entry(o.numbers[j]).place = uint32(j)
}

func (o *order) Push(x any) {
	n := x.(number)
	o.table.entry(n).place = uint32(len(o.numbers))
	o.numbers = append(o.numbers, n)
}

func (o *order) Pop() any {
	last := len(o.numbers) - 1
	n := o.numbers[last]
	o.numbers = o.numbers[:last]
	return n
}
