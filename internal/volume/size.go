package volume

// Size is an amount of room: what a volume takes, or what a file system lacks.
type Size struct{ Bytes, Inodes int64 }

// Add returns the sum of both.
func (s Size) Add(t Size) Size { return Size{s.Bytes + t.Bytes, s.Inodes + t.Inodes} }

// Sub returns the difference.
func (s Size) Sub(t Size) Size { return Size{s.Bytes - t.Bytes, s.Inodes - t.Inodes} }
