package retained

import (
	"iter"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// The queue also keeps what each of its volumes takes on the disk. A volume comes without a size
// and is measured later; see [Queue.NextUnmeasured].

const (
	// sector is the unit that file systems count in.
	sector = 512
	// inodeBits are enough for 16 million inodes, and leave 256 TiB for the bytes.
	inodeBits = 24
	maxInodes = 1<<inodeBits - 1
	maxBlocks = 1<<(63-inodeBits) - 1
)

// size packs the space that a volume takes into one word. While that is not known, size is the
// complement of the entry's place in the list of volumes to be measured.
type size int64

func measured(s volume.Size) size {
	blocks := min(max(s.Bytes, 0)/sector, maxBlocks)
	return size(blocks<<inodeBits | min(max(s.Inodes, 0), maxInodes))
}

func (s size) known() bool { return s >= 0 }

// size is only for a size that is known.
func (s size) size() volume.Size {
	return volume.Size{Bytes: int64(s) >> inodeBits * sector, Inodes: int64(s) & maxInodes}
}

// place is only for a size that is not known.
func (s size) place() int { return int(^s) }

func toBeMeasured(place int) size { return ^size(place) }

// Bytes returns how much space the volumes take that have been measured.
func (q *Queue) Bytes() int64 { return q.bytes }

// Unmeasured returns how many volumes have not been measured.
func (q *Queue) Unmeasured() int { return len(q.unmeasured) }

// NextUnmeasured returns up to atMost volumes to be measured next. Those that came last come first:
// the kernel still has their directories in memory. The caller must not change the queue before it
// has all of them.
func (q *Queue) NextUnmeasured(atMost int) iter.Seq[volume.Record] {
	return func(yield func(volume.Record) bool) {
		for i := len(q.unmeasured) - 1; i >= max(len(q.unmeasured)-atMost, 0); i-- {
			if !yield(q.table.record(q.unmeasured[i])) {
				return
			}
		}
	}
}

// Measured notes what the volume takes that was unpublished at the given time, unless it is gone or
// was published meanwhile. A volume that cannot be measured takes the zero Size.
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
	q.tenants.measured(n)
}

// addSize lists a new entry as one to be measured, unless its data may be gone already.
func (q *Queue) addSize(n number) {
	if q.table.fate(n).phase == volume.Deleting {
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
		q.unmeasured = nil // a start may have made it long
	}
}
