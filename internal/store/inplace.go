package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/crashpoint"
)

// noCopy is the flag of a file (chattr +C) that btrfs is to overwrite in place.
const noCopy = 0x00800000

// errCopies is why nothing can be reserved for a file that has not the flag.
var errCopies = errors.New("btrfs copies the file on write, which is set when it is created: stop the daemon, copy the file to an empty one made with chattr +C, and give that its name")

// overwriteInPlace has btrfs overwrite a file, which has to be empty, as other
// file systems do. What it copies on write takes new space for each commit,
// whatever is reserved, and with the disk full there is none: not even what makes
// room could be recorded.
//
// A snapshot has each block copied once more. It costs the checksums that btrfs
// keeps. Those of the records do not depend on
// the file system. That the flag cannot be set is no error here: it is one of the
// reserve, see [Store.ReserveError].
func overwriteInPlace(file *os.File) {
	if !onBtrfs(file) {
		return
	}
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return
	}
	_ = crashpoint.Around("store/no-copy-new", func() error {
		return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags|noCopy))
	})
}

// copiesOnWrite tells whether each commit takes new space.
func copiesOnWrite(file *os.File) bool {
	if !onBtrfs(file) {
		return false
	}
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	return err != nil || flags&noCopy == 0
}

func onBtrfs(file *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &fs) == nil && fs.Type == unix.BTRFS_SUPER_MAGIC
}
