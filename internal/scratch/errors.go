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
	// ErrTrashRefuses: the file system does not let a data directory be moved into the
	// trash. It has no room for one more name (ENOSPC, EDQUOT), the trash has as many
	// directories as it can hold (EMLINK: 65,000 on ext4 without dir_nlink), or the two
	// do not go together (EXDEV: their projects, an overlay). Nothing was changed.
	ErrTrashRefuses = errors.New("the trash does not take it")
)
