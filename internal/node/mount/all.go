package mount

import "github.com/moby/sys/mountinfo"

// All returns all mounts of this process' mount namespace, older mounts before those on top of them. It
// reads the whole mount table, and asks no file system. The path of a directory that has been removed ends
// in //deleted.
func All() ([]*mountinfo.Info, error) { return readTable() }
