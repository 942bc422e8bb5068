package retained

import (
	"iter"
	"math"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Bytes returns how much space the listed volumes take that have been measured.
func (x *Index) Bytes() int64 { return x.bytes }

// Unmeasured returns how many volumes have not been measured.
func (x *Index) Unmeasured() int { return len(x.unmeasured) }

// NextUnmeasured returns up to atMost volumes to be measured next. Those that came last come first:
// the kernel still has their directories in memory. The caller must not change the index before it
// has all of them.
func (x *Index) NextUnmeasured(atMost int) iter.Seq[volume.Record] {
	return func(yield func(volume.Record) bool) {
		for i := len(x.unmeasured) - 1; i >= max(len(x.unmeasured)-atMost, 0); i-- {
			if !yield(x.record(x.unmeasured[i])) {
				return
			}
		}
	}
}

// Measured notes what the volume takes that was unpublished at the given time, unless it is gone or
// was published meanwhile. A volume that cannot be measured takes the zero Size.
func (x *Index) Measured(id volume.ID, unpublished time.Time, is volume.Size) {
	e := x.find(id)
	if e == nil || !e.isListed() || e.inodes != unmeasured || !x.clock.time(e.since).Equal(unpublished) {
		return
	}
	x.dropUnmeasured(e)
	e.bytes, e.inodes = max(is.Bytes, 0), int32(min(max(is.Inodes, 0), math.MaxInt32))
	x.bytes += e.bytes
	x.tenants.add(e)
}

// addSize counts the size of a volume, or lists it as one to be measured. dropSize undoes that.
func (x *Index) addSize(e *entry) {
	if e.inodes != unmeasured {
		x.bytes += e.bytes
		return
	}
	e.inUnmeasured = int32(len(x.unmeasured))
	x.unmeasured = append(x.unmeasured, e)
}

func (x *Index) dropSize(e *entry) {
	if e.inodes != unmeasured {
		x.bytes -= e.bytes
		return
	}
	x.dropUnmeasured(e)
}

// dropUnmeasured takes an entry off the list; the last one takes its place.
func (x *Index) dropUnmeasured(e *entry) {
	last := len(x.unmeasured) - 1
	moved := x.unmeasured[last]
	moved.inUnmeasured = e.inUnmeasured
	x.unmeasured[moved.inUnmeasured] = moved
	x.unmeasured[last] = nil
	x.unmeasured = x.unmeasured[:last]
	if last == 0 {
		x.unmeasured = nil // a start may have made it long
	}
}
