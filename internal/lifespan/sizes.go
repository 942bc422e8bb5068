package lifespan

import (
	"iter"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// The queue also keeps how much space each of its volumes takes. They come
// without that and are measured later; see [Queue.NextUnmeasured].

const (
	// block is what a file system counts in, so that nothing is lost by it.
	block = 512
	// inodeBits are enough for 16 million inodes, and leave 256 TiB for the bytes.
	// What is larger counts as that.
	inodeBits = 24
	maxInodes = 1<<inodeBits - 1
	maxBlocks = 1<<(63-inodeBits) - 1
)

// size is the space that a volume takes, or, while that is not known, the
// complement of its place in the list of those to be measured. One word does for
// all of it.
type size int64

func measured(s volume.Size) size {
	blocks := min(max(s.Bytes, 0)/block, maxBlocks)
	return size(blocks<<inodeBits | min(max(s.Inodes, 0), maxInodes))
}

func (s size) known() bool { return s >= 0 }

// size is only for one that is known.
func (s size) size() volume.Size {
	return volume.Size{Bytes: int64(s) >> inodeBits * block, Inodes: int64(s) & maxInodes}
}

// place is only for a size that is not known.
func (s size) place() int { return int(^s) }

func toBeMeasured(place int) size { return ^size(place) }

// Bytes returns how much space the volumes take that have been measured.
func (q *Queue) Bytes() int64 { return q.bytes }

// Unmeasured returns how many volumes have not been measured.
func (q *Queue) Unmeasured() int { return len(q.unmeasured) }

// Unmeasured is the record of a volume that is to be measured.
type Unmeasured struct{ volume.Record }

// NextUnmeasured returns the volumes to be measured next, at most so many. Those that
// came last come first: the kernel still has in memory what there is to read. The
// queue must not be changed on the way.
func (q *Queue) NextUnmeasured(atMost int) iter.Seq[Unmeasured] {
	return func(yield func(Unmeasured) bool) {
		for i := len(q.unmeasured) - 1; i >= max(len(q.unmeasured)-atMost, 0); i-- {
			if !yield(Unmeasured{q.table.record(q.unmeasured[i])}) {
				return
			}
		}
	}
}

// Measured notes how much space the volume takes that was retained at the given
// time. It does nothing when that one is gone, or was published meanwhile: then
// its data may have changed.
func (q *Queue) Measured(id volume.ID, unpublished time.Time, is volume.Size) {
	n := q.table.find(id)
	if n == 0 {
		return
	}
	e := q.table.entry(n)
	if e.size.known() || !q.table.unpublished(n).Equal(unpublished) {
		return
	}
	q.dropUnmeasured(n)
	e.size = measured(is)
	q.bytes += e.size.size().Bytes
}

// addSize begins without a size. A volume that is being deleted is not measured:
// its data may be gone already.
func (q *Queue) addSize(n number) {
	if q.table.lot(n).phase == volume.Deleting {
		return
	}
	q.table.entry(n).size = toBeMeasured(len(q.unmeasured))
	q.unmeasured = append(q.unmeasured, n)
}

func (q *Queue) dropSize(n number) {
	if s := q.table.entry(n).size; s.known() {
		q.bytes -= s.size().Bytes
		return
	}
	q.dropUnmeasured(n)
}

// dropUnmeasured takes an entry off the list; the last one takes its place.
func (q *Queue) dropUnmeasured(n number) {
	last := len(q.unmeasured) - 1
	moved := q.unmeasured[last]
	place := q.table.entry(n).size
	q.table.entry(moved).size = place
	q.unmeasured[place.place()] = moved
	q.unmeasured = q.unmeasured[:last]
	if last == 0 {
		// A start may have made it long.
		q.unmeasured = nil
	}
}
