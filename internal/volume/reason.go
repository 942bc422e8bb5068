package volume

import "fmt"

// Reason is why a retained volume is deleted.
type Reason uint8

const (
	// Expired: its lifespan is over.
	Expired Reason = iota
	// ForBytes: its lifespan is not over, but the disk runs out of bytes.
	ForBytes
	// ForInodes: its lifespan is not over, but the disk runs out of inodes.
	ForInodes
)

// Early reports whether the volume goes before its lifespan is over.
func (r Reason) Early() bool { return r != Expired }

// String returns the reason in one word.
func (r Reason) String() string {
	switch r {
	case Expired:
		return "expired"
	case ForBytes:
		return "bytes"
	case ForInodes:
		return "inodes"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
