package messages

import "github.com/katbox/katbox/internal/volume"

// Erase orders an entry of the trash to be erased: the data of a volume that
// was deleted. Volume -> eraser.
type Erase struct {
	// Name of the entry.
	Name string
	// Volume is whose data it was.
	Volume volume.ID
}

func (*Erase) toEraser() {}
