package messages

// Measure asks for a measurement at once. Retention -> pressure; answered by
// Pressure.
type Measure struct {
	// Seq numbers the questions.
	Seq uint64
}

// Pressure tells how much of their lifespan the retained volumes may keep.
// Pressure -> retention, after each measurement.
type Pressure struct {
	// Factor is between 0 (no space free) and 1 (enough space free).
	Factor float64
	// Seq is the last question that was asked before the measurement began.
	Seq uint64
}

func (*Measure) toPressure()   {}
func (*Pressure) toRetention() {}
