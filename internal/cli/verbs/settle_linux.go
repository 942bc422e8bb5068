package verbs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// settle waits until the disk has what was written to the file system of a directory, so that what is noted afterwards
// is true after a power cut too.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return os.NewSyscallError("syncfs", err)
	}
	return nil
}
