package lifespan

import (
	"iter"
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// The queue also keeps how much space each of its volumes takes. They come
// without that and are measured later; see [Queue.NextUnmeasured].

// size is the space that a volume takes, in bytes, or, while that is not known,
// the complement of its place in the list of those to be measured. One word does
// for both.
type size int64

func (s size) known() bool { return s >= 0 }

// place is only for a size that is not known.
func (s size) place() int { return int(^s) }

func toBeMeasured(place int) size { return ^size(place) }

// Bytes returns how much space the volumes take that have been measured.
func (q *Queue) Bytes() int64 { return q.bytes }

// Unmeasured returns how many volumes have not been measured.
func (q *Queue) Unmeasured() int { return len(q.unmeasured) }

// NextUnmeasured returns the volumes to be measured next, at most so many. Those that
// came last come first: the kernel still has in memory what there is to read. The
// queue must not be changed on the way.
func (q *Queue) NextUnmeasured(atMost int) iter.Seq[volume.Record] {
	return func(yield func(volume.Record) bool) {
		for i := len(q.unmeasured) - 1; i >= max(len(q.unmeasured)-atMost, 0); i-- {
			if !yield(q.unmeasured[i].record) {
				return
			}
		}
	}
}

// Measured notes how much space the volume takes that was retained at the given
// time. It does nothing when that one is gone, or was published meanwhile: then
// its data may have changed.
func (q *Queue) Measured(id volume.ID, unpublished time.Time, bytes int64) {
	e, ok := q.entries[id]
	if !ok || e.size.known() || !e.record.Unpublished.Equal(unpublished) {
		return
	}
	q.dropUnmeasured(e)
	e.size = size(max(bytes, 0))
	q.bytes += int64(e.size)
}

// addSize begins without a size. A volume that is being deleted is not measured:
// its data may be gone already.
func (q *Queue) addSize(e *entry) {
	if e.record.Phase == volume.Deleting {
		return
	}
	e.size = toBeMeasured(len(q.unmeasured))
	q.unmeasured = append(q.unmeasured, e)
}

func (q *Queue) dropSize(e *entry) {
	if e.size.known() {
		q.bytes -= int64(e.size)
		return
	}
	q.dropUnmeasured(e)
}

// dropUnmeasured takes an entry off the list; the last one takes its place.
func (q *Queue) dropUnmeasured(e *entry) {
	last := len(q.unmeasured) - 1
	moved := q.unmeasured[last]
	moved.size = e.size
	q.unmeasured[e.size.place()] = moved
	q.unmeasured[last] = nil
	q.unmeasured = q.unmeasured[:last]
	if last == 0 {
		// A start may have made it long.
		q.unmeasured = nil
	}
}
