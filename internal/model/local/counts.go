package local

// Counts are the numbers of what is in a pool.
type Counts struct {
	// Ready are the volumes that claims have, Retained those that are kept without one, Unfinished those that are
	// being made or deleted. Snapshots are counted apart.
	Ready, Retained, Unfinished, Snapshots int
}
