package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Location is where a directory is in its file system, in the words of the mount table.
type Location struct {
	// Device is the number of the file system, which on btrfs differs from that of stat(2).
	Device uint64
	// Root is the directory's path inside the file system: a bind mount of the directory shows it.
	Root   string
	FSType string
}

// Locate returns where an open directory is. It reads the whole mount table.
func Locate(dir *os.File) (Location, error) {
	resolved, id, err := resolveOpen(int(dir.Fd()), dir.Name())
	if err != nil {
		return Location{}, err
	}
	table, err := readTable()
	if err != nil {
		return Location{}, fmt.Errorf("locate %s: %w", dir.Name(), err)
	}
	here, err := locate(table, resolved, id)
	if err != nil {
		return Location{}, fmt.Errorf("locate %s: %w", dir.Name(), err)
	}
	device := unix.Mkdev(uint32(here.mount.Major), uint32(here.mount.Minor))
	return Location{Device: device, Root: here.root, FSType: here.mount.FSType}, nil
}
