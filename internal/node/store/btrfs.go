package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// noCopy is the flag of a file (chattr +C) that btrfs overwrites in place.
	noCopy = 0x00800000
	// mostTries bounds the tries of a transaction that finds no room. Of 35 that found none, 33
	// succeeded at the second try and the others at the third.
	mostTries = 8
)

// errCopies is why nothing can be reserved for a file without the flag.
var errCopies = errors.New("btrfs copies the file on write, which is set when it is created: stop the daemon," +
	" copy the file to an empty one made with chattr +C, and give that its name")

// overwriteInPlace makes btrfs overwrite a file, which has to be empty, as other file systems do. A
// file that it copies on write takes new space for each commit, whatever is reserved. The flag
// costs the checksums of btrfs, and the records have their own. The reserve says if it is not set.
func overwriteInPlace(file *os.File) {
	if flags, on := btrfsFlags(file); on {
		_ = kernel.SetFlags(int(file.Fd()), flags|noCopy)
	}
}

// copiesOnWrite reports whether each commit takes new space.
func copiesOnWrite(file *os.File) bool {
	flags, on := btrfsFlags(file)
	return on && flags&noCopy == 0
}

// btrfsFlags returns the flags of a file, and whether it is on btrfs.
func btrfsFlags(file *os.File) (flags uint32, on bool) {
	var fs unix.Statfs_t
	if unix.Fstatfs(int(file.Fd()), &fs) != nil || fs.Type != unix.BTRFS_SUPER_MAGIC {
		return 0, false
	}
	flags, _ = unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	return flags, true
}

// again repeats a transaction that found no room, and left nothing behind, after makeRoom.
func again(transaction, makeRoom func() error) error {
	err := volume.WantsRoom(transaction(), volume.InWorkdir)
	for range mostTries - 1 {
		if !errors.Is(err, volume.ErrNoSpace) || makeRoom() != nil {
			break
		}
		err = volume.WantsRoom(transaction(), volume.InWorkdir)
	}
	return err
}

// makeRoom makes btrfs end its own transaction, which gives back what that had put aside, and frees
// the space of deleted files. While its trees are full, overwriting in place takes room too.
func makeRoom(file *os.File) error {
	if _, on := btrfsFlags(file); !on {
		return errors.ErrUnsupported
	}
	return kernel.Syncfs(int(file.Fd()))
}
