package messages

import "github.com/katbox/katbox/internal/volume"

// Measure asks for a measurement that shows what the deletions so far have
// freed. Retention -> eraser, which passes it on once it has erased what is in
// the trash -> pressure; answered by Pressure.
type Measure struct {
	// Seq numbers the questions.
	Seq uint64
	// Erased says that something was erased since the last question. The eraser
	// sets it.
	Erased bool
}

// Pressure tells how much of their lifespan the retained volumes may keep.
// Pressure -> retention and eraser, after each measurement.
type Pressure struct {
	// NoSpace says that a call found no room since the last measurement, whatever
	// the file system says of itself.
	NoSpace bool
	// Factor is between 0 (no space free) and 1 (enough space free).
	Factor float64
	// Scarcer is what there is less of: the reason for a volume to go early.
	Scarcer volume.Reason
	// Lacking is how much has to come free at once.
	Lacking volume.Size
	// Seq is the last question that was asked before the measurement began.
	Seq uint64
}

// NoSpace says that an operation found the file system full, so that it is
// measured at once. Volume -> eraser -> pressure.
type NoSpace struct {
	// Erasing says that something is being erased, which makes room. The eraser
	// sets it.
	Erasing bool
}

func (*Measure) toEraser()     {}
func (*Measure) toPressure()   {}
func (*NoSpace) toEraser()     {}
func (*NoSpace) toPressure()   {}
func (*Pressure) toEraser()    {}
func (*Pressure) toRetention() {}
