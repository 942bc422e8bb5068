package volume

// Change is one change of what is durably known.
type Change struct {
	ID ID
	// Record is the volume's record, with the same ID; nil forgets the volume.
	Record *Record
}
