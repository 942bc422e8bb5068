package staged

import "github.com/katbox/katbox/internal/pools"

// Record is what a node keeps about a volume that is staged.
type Record struct {
	// Volume is the volume's ID.
	Volume string
	// Path is the staging target path.
	Path string
	// Block: pods get a block device, else a file system.
	Block    bool
	FSType   string
	ReadOnly bool
	// Options are the mount options.
	Options []string
	// Attachment is how the node reaches the volume.
	Attachment pools.Attachment
	// Serial is the serial number of the device; empty for NFS.
	Serial string
	// Formatting: a file system is being made on the device. What a crash left of it may be made anew,
	// because the volume was proven empty before and was not used since.
	Formatting bool
}
