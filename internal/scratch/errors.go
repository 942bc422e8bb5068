package scratch

import "errors"

var (
	// ErrMountInside: something is mounted inside what was to be erased. It was
	// left alone, with all that it covers and the directories that lead to it;
	// the error says where it is.
	ErrMountInside = errors.New("something is mounted inside")
	// ErrNotOurs: at the place of a data directory is something that this
	// package did not make: a symbolic link, a file or a mount point. Nothing
	// was changed.
	ErrNotOurs = errors.New("not a data directory")
)
