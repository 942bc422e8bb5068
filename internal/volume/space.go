package volume

// Size is an amount of room: what a volume takes, or what a file system lacks.
type Size struct{ Bytes, Inodes int64 }

// Add returns the sum of both.
func (s Size) Add(t Size) Size { return Size{s.Bytes + t.Bytes, s.Inodes + t.Inodes} }

// Sub returns the difference.
func (s Size) Sub(t Size) Size { return Size{s.Bytes - t.Bytes, s.Inodes - t.Inodes} }

// Space is the room on a file system.
type Space struct {
	// Total is the size of the file system. Its Inodes are 0 if their number has no limit, as
	// on btrfs.
	Total Size
	// Free is what processes without privileges can still get.
	Free Size
}
