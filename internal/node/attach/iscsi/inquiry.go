package iscsi

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/attach"
)

// inquire asks the array behind a disk which one it is now. sysfs has what the array said when the disk appeared: an
// array that unmapped the LUN and gave its number to another volume makes that wrong, and the disk's I/O goes to the
// other volume. It waits while the session is down. An array need not have both pages.
func inquire(path string) (i attach.Identity, err error) {
	fd, err := kernel.Openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return i, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var refused []error
	ask := func(page byte) string {
		content, err := kernel.VitalProductData(fd, page)
		if err != nil {
			refused = append(refused, fmt.Errorf("INQUIRY to %s: %w", path, err))
			return ""
		}
		return parsePage(page, content)
	}
	i.Serial, i.WWID = ask(serialPage), ask(namePage)
	const pages = 2
	if len(refused) == pages || len(refused) == 1 && !errors.Is(refused[0], kernel.ErrIllegal) {
		return attach.Identity{}, refused[0]
	}
	return i, nil
}
