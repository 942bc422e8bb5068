package iscsi

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/kernel"
)

// inquire asks the array behind a disk which serial number it has now. sysfs has what the array
// said when the disk appeared: an array that unmapped the LUN and gave its number to another volume
// makes that wrong, and the disk's I/O goes to the other volume. It waits while the session is
// down.
func inquire(path string) (string, error) {
	fd, err := kernel.Openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	page, err := kernel.VitalProductData(fd, serialPage)
	if err != nil {
		return "", fmt.Errorf("INQUIRY to %s: %w", path, err)
	}
	serial, err := parseSerial(page)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return serial, nil
}
