package lastwords

import (
	"bytes"
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
	return write(to, api.MissingLogs, append(text, '\n'))
}

// write makes a file in an open directory.
func write(to int, name string, text []byte) error {
	fd, err := kernel.Createat(to, name, unix.O_WRONLY|unix.O_EXCL|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	defer unix.Close(fd)
	if err := kernel.Pwrite(fd, text, 0); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// KeepEnd keeps in an open directory of logs how their pod has ended, in the file [api.PodEnd]. Readers have it as it was
// before or as it is now. Nothing is written if it is kept already.
func KeepEnd(to int, end []byte) error {
	if HasEnd(to, end) {
		return nil
	}
	const next = api.PodEnd + ".new"
	if err := kernel.Unlinkat(to, next); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", next, err)
	}
	if err := write(to, next, end); err != nil {
		return err
	}
	if err := kernel.Renameat(to, next, to, api.PodEnd); err != nil {
		return fmt.Errorf("rename %s: %w", next, err)
	}
	return nil
}

// HasEnd reports whether that end is kept in an open directory of logs.
func HasEnd(to int, end []byte) bool {
	fd, err := kernel.Openat(to, api.PodEnd, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	kept := make([]byte, len(end)+1)
	n, err := read(fd, kept, 0)
	return err == nil && bytes.Equal(kept[:n], end)
}
