package beneath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// Offsets in struct linux_dirent64.
const (
	direntNext   = 8
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// Record is one name in a directory, as getdents64(2) returns it.
type Record struct {
	Inode uint64
	// Next is the position in the directory behind the name, for lseek(2).
	Next int64
	// Type is DT_DIR and the like, or DT_UNKNOWN.
	Type uint8
	// Name refers to the buffer, where it begins at Start.
	Name  []byte
	Start int
}

// Getdents reads names from an open directory; the size is 0 at the end.
func Getdents(fd int, buf []byte) (size int, err error) {
	err = kernel.IgnoreEINTR(func() error {
		size, err = unix.Getdents(fd, buf)
		return err
	})
	if errors.Is(err, unix.ENOENT) {
		// The directory has been removed since it was opened.
		return 0, nil
	}
	return size, os.NewSyscallError("getdents", err)
}

// Records yields the names in what [Getdents] has read, without . and ...
func Records(read []byte) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for start := 0; start < len(read); {
			record := read[start:]
			record = record[:binary.NativeEndian.Uint16(record[direntLength:])]
			length := bytes.IndexByte(record[direntName:], 0)
			name := record[direntName : direntName+length]
			if string(name) != "." && string(name) != ".." && !yield(Record{
				Inode: binary.NativeEndian.Uint64(record),
				Next:  int64(binary.NativeEndian.Uint64(record[direntNext:])),
				Type:  record[direntType],
				Name:  name,
				Start: start + direntName,
			}) {
				return
			}
			start += len(record)
		}
	}
}

// Rewind goes back to the first name of an open directory.
func Rewind(fd int) error { return Seek(fd, 0) }

// Seek goes to a position in an open directory: that behind a name, or 0 for the first one.
func Seek(fd int, position int64) error {
	_, err := unix.Seek(fd, position, unix.SEEK_SET)
	return os.NewSyscallError("lseek", err)
}
