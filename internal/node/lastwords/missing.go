package lastwords

import (
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/api"
)

// removeOthers removes what an earlier Copy has left and this one has not written.
func (c *copying) removeOthers() error {
	for _, container := range namesIn(c.to) {
		if !containerName.MatchString(container) {
			continue
		}
		if err := c.removeIn(container); err != nil {
			return err
		}
	}
	err := kernel.Unlinkat(c.to, api.MissingLogs)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (c *copying) removeIn(container string) error {
	dir, err := kernel.Openat(c.to, container, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	left := 0
	for _, file := range namesIn(dir) {
		if c.written[name{container, file}] {
			left++
		} else if err := kernel.Unlinkat(dir, file); err != nil {
			return err
		}
	}
	if left > 0 {
		return nil
	}
	return kernel.Rmdirat(c.to, container)
}

// Interrupted notes in the open directory that a Copy into it did not come to its end, and never will. It reports what
// there is; without a file of a container it notes nothing.
func Interrupted(to int) (kept Kept, err error) {
	for _, container := range namesIn(to) {
		if !containerName.MatchString(container) {
			continue
		}
		dir, err := kernel.Openat(to, container, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if err != nil {
			return kept, fmt.Errorf("open the logs of container %s that were kept: %w", container, err)
		}
		for _, file := range namesIn(dir) {
			if st, err := kernel.Lstatat(dir, file); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
				kept.Files++
				kept.Bytes += st.Size
			}
		}
		unix.Close(dir)
	}
	if kept.Files == 0 {
		return kept, nil
	}
	kept.Interrupted = true
	if err := kernel.Unlinkat(to, api.MissingLogs); err != nil && !errors.Is(err, unix.ENOENT) {
		return kept, fmt.Errorf("remove %s: %w", api.MissingLogs, err)
	}
	return kept, writeMissing(to, api.LogsMissing{Interrupted: true})
}

// writeMissing writes what is missing.
func writeMissing(to int, missing api.LogsMissing) error {
	text, err := json.Marshal(missing)
	if err != nil {
		return fmt.Errorf("write %s: %w", api.MissingLogs, err)
	}
	fd, err := kernel.Createat(to, api.MissingLogs, unix.O_WRONLY|unix.O_EXCL|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return fmt.Errorf("make %s: %w", api.MissingLogs, err)
	}
	defer unix.Close(fd)
	if err := kernel.Pwrite(fd, append(text, '\n'), 0); err != nil {
		return fmt.Errorf("write %s: %w", api.MissingLogs, err)
	}
	return nil
}
