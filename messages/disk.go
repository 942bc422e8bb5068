package messages

import "github.com/katbox/katbox/internal/model/volume"

// Erase orders an entry of the trash to be erased: the data of a volume that was deleted.
// Volume -> disk.
type Erase struct {
	// Name of the entry.
	Name string
	// Volume is whose data it was.
	Volume volume.ID
}

// MeasureDisk asks for a measurement that shows what all deletions so far have freed: the disk
// measures once their data is erased. One question is open at a time.
// Supervisor -> disk; answered by Pressure.
type MeasureDisk struct{}

// NoSpace says that an operation found the file system full, so that it is measured at once.
// Volume -> disk.
type NoSpace struct{}

// Pressure tells how much of their lifespan the retained volumes may keep, and how much room is
// lacking.
// Disk -> supervisor, after each measurement that shows something new.
type Pressure struct {
	// Answers says that this measurement is the one that MeasureDisk asked for.
	Answers bool
	// NoSpace says that an operation found no room since the last measurement, and that nothing
	// is being erased which would make some.
	NoSpace bool
	// Factor is between 0 (no space free) and 1 (enough space free).
	Factor float64
	// Scarcer is what there is less of: the reason for a volume to go early.
	Scarcer volume.Reason
	// Lacking is how much has to come free at once.
	Lacking volume.Size
	// Short is how much of this is missing before no guaranteed volume has to go.
	Short volume.Size
	// Erased are volumes that were deleted. The data of each is erased, or cannot be, and this
	// measurement is the first one that shows what came free.
	Erased []volume.ID
	// Came is how much came free since the last report, whatever was written meanwhile.
	Came volume.Size
	// Total is the size of the file system in bytes; 0 if it could not be measured.
	Total int64
}
