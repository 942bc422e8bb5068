package mount

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// ID returns the ID of the mount that the open file fd is on: the number that
// the mount has in the mount table. Two mounts of one directory have different
// IDs; once a mount is gone, another one may get its ID.
func ID(fd int) (uint64, error) {
	var st unix.Statx_t
	err := kernel.IgnoreEINTR(func() error {
		// A file system that hangs is not asked: the kernel knows the mount.
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st)
	})
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id, nil
	}
	// Before Linux 5.8 statx does not know it, before 4.11 there is no statx.
	return procID(fd)
}

// procID does what ID does, by way of /proc.
func procID(fd int) (uint64, error) {
	path := "/proc/self/fdinfo/" + strconv.Itoa(fd)
	info, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no mnt_id", path)
}
