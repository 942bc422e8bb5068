package content

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/story"
)

// MarkerName is the file in each volume that proves that its data is there.
const MarkerName = "soak-marker"

// marker is what the marker file contains: nothing that another volume could
// have, by whatever mistake.
func (s Spec) marker() string { return s.ID + " " + s.Content.Marker + "\n" }

// Look looks for the marker of a volume in a directory, and says what there is in the words of a story: Whole with
// the marker; Partial if that is not there, is wrong or cannot be read; Gone without the directory. The error is nil
// if it is Whole, and else says what was found instead. It costs an open, a read and a close, and the directory may
// go away meanwhile.
func Look(dir string, s Spec) (story.Verb, error) {
	want := s.marker()
	// One byte more than there should be tells a longer marker.
	got, err := readStart(filepath.Join(dir, MarkerName), len(want)+1)
	if err == nil && string(got) == want {
		return story.Whole, nil
	}
	if err == nil {
		return story.Partial, fmt.Errorf("marker in %s says %.200q instead of %.200q", dir, got, want)
	}
	// The directory is asked after the file. The other way round, data that
	// goes in between would look partial.
	var st unix.Stat_t
	statErr := retried(func() error { return unix.Lstat(dir, &st) })
	switch {
	case statErr == nil:
		return story.Partial, fmt.Errorf("marker in %s, which exists: %w", dir, err)
	case errors.Is(statErr, unix.ENOENT):
		return story.Gone, fmt.Errorf("%s does not exist", dir)
	default:
		return story.Partial, fmt.Errorf("look at %s: %w", dir, statErr)
	}
}

// readStart returns the beginning of a file, up to limit bytes.
func readStart(path string, limit int) ([]byte, error) {
	fd, err := retriedFD(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	buffer := make([]byte, limit)
	n, err := retriedFD(func() (int, error) { return unix.Read(fd, buffer) })
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return buffer[:n], nil
}

// Identity returns the device and the inode number of a directory. A target and
// the data directory that is mounted there have the same.
func Identity(dir string) (device, inode uint64, err error) {
	var st unix.Stat_t
	if err := retried(func() error { return unix.Lstat(dir, &st) }); err != nil {
		return 0, 0, fmt.Errorf("look at %s: %w", dir, err)
	}
	return st.Dev, st.Ino, nil
}
