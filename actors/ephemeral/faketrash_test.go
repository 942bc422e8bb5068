package ephemeral

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/lib/pace"
	"github.com/katbox/katbox/internal/node/scratch"
)

// fakeTrash is a trash whose entries have a number of files, and cannot be erased while something is
// in the way.
type fakeTrash struct {
	// broken is why it cannot be searched.
	broken   error
	searches int
	// slow is how long a batch takes, if longer than usual.
	slow time.Duration

	mu       sync.Mutex
	entries  map[string]int
	inTheWay error
	tries    []time.Time
	ended    []string
}

// batch is how many files the fake removes at a time, and batchTime how long that takes.
const (
	batch     = pace.FullBatch
	batchTime = time.Millisecond
)

func (b *fakeTrash) TrashSize() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.searches++
	return len(b.entries), b.broken
}

// TrashPage has the names in the order of their places, as file systems do.
func (b *fakeTrash) TrashPage(from int64, atLeast int) (page []string, next int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.entries {
		if placeOf(name) >= from {
			page = append(page, name)
		}
	}
	slices.SortFunc(page, func(a, b string) int { return cmp.Compare(placeOf(a), placeOf(b)) })
	if len(page) > atLeast {
		page = page[:atLeast]
		next = placeOf(page[atLeast-1]) + 1
	}
	return page, next, b.broken
}

func placeOf(name string) int64 {
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return int64(sum.Sum64() >> 2)
}

func (b *fakeTrash) Erase(ctx context.Context, name string, pace scratch.Pace) error {
	removed := 0
	for {
		if err := pace(ctx, removed); err != nil {
			return err
		}
		time.Sleep(max(batchTime, b.slow))
		b.mu.Lock()
		had, there := b.entries[name]
		removed = min(batch, had)
		if there {
			b.entries[name] -= removed
		}
		done, inTheWay := had == removed, b.inTheWay
		if done && there {
			b.tries = append(b.tries, time.Now())
			if inTheWay == nil {
				delete(b.entries, name)
				b.ended = append(b.ended, name)
			}
		}
		b.mu.Unlock()
		if done {
			// It is told, and does not wait for another turn.
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = pace(over, removed)
			return inTheWay
		}
	}
}

// set says what is in the trash, and what is in the way of erasing it.
func (b *fakeTrash) set(inTheWay error, entries ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inTheWay = inTheWay
	b.entries = map[string]int{}
	for _, name := range entries {
		b.entries[name] = 1
	}
}

// erased are the entries that are gone, in that order.
func (b *fakeTrash) erased() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ended)
}

// tried is when an erasure came to its end.
func (b *fakeTrash) tried() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tries)
}

func (b *fakeTrash) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// put adds entries with some batches of files each to what is in the trash.
func (b *fakeTrash) put(batches int, names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.entries[name] = batches * batch
	}
}
