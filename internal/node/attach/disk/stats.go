package disk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// Stats returns how full the file system is that is mounted at path, or how large the device is whose node is bound
// there: its Space.Total.Bytes, and nothing else. The error is volume.ErrNotFound if nothing is mounted there.
//
// A file system that answers with an error is abnormal, and so is one that the kernel has made read-only after
// errors.
func (t Tools) Stats(path string) (volume.Stats, error) {
	stats, err := statsOf(path)
	return stats, wrap(err, "stats of %s", path)
}

func statsOf(path string) (volume.Stats, error) {
	there, err := at(path)
	if err != nil {
		return volume.Stats{}, err
	}
	if isNode(there) {
		return statsOfDevice(path, there)
	}
	var st unix.Statfs_t
	err = kernel.IgnoreEINTR(func() error { return unix.Statfs(path, &st) })
	if err == nil {
		// An XFS that was shut down still answers statfs.
		_, err = kernel.Lstatat(unix.AT_FDCWD, path)
	}
	if cause := broken(err); cause != "" {
		return volume.Stats{Abnormal: true, Condition: cause}, nil
	}
	if err != nil {
		return volume.Stats{}, err
	}
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	size := func(blocks, inodes uint64) volume.Size {
		return volume.Size{Bytes: int64(blocks) * unit, Inodes: int64(inodes)}
	}
	stats := volume.Stats{
		Space: volume.Space{Total: size(st.Blocks, st.Files), Free: size(st.Bavail, st.Ffree)},
		Used:  size(st.Blocks-st.Bfree, st.Files-st.Ffree),
	}
	stats.Condition, stats.Readable = afterErrors(there)
	stats.Abnormal = stats.Condition != ""
	return stats, nil
}

// afterErrors says what the kernel did to a file system that had errors, and whether it can be read; empty if it did
// nothing.
func afterErrors(m attach.Mount) (did string, readable bool) {
	switch {
	case slices.Contains(m.Options, "shutdown"):
		return fmt.Sprintf("the kernel shut down the %s of %s after errors; its log says which", m.FSType, m.Source), false
	// A mount that is read-only because it was asked for says so itself.
	case slices.Contains(m.Options, "ro") && !slices.Contains(m.Flags, "ro"), slices.Contains(m.Options, "emergency_ro"):
		return fmt.Sprintf("the kernel made the %s of %s read-only after errors; its log says which", m.FSType, m.Source), true
	}
	return "", false
}

func statsOfDevice(path string, there attach.Mount) (volume.Stats, error) {
	if strings.HasSuffix(there.Root, removed) {
		return volume.Stats{Abnormal: true, Condition: "the device is gone"}, nil
	}
	number, err := blockDevice(path)
	if err != nil {
		return volume.Stats{}, fmt.Errorf("%w: %w", attach.ErrNotOurs, err)
	}
	size, err := deviceSize(number)
	return volume.Stats{Space: volume.Space{Total: volume.Size{Bytes: size}}}, err
}

// broken says what an answer means that a file system gives when it does not work; empty for other errors.
func broken(err error) string {
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EUCLEAN):
		return "the file system does not work: " + volume.OneLine(err)
	case errors.Is(err, unix.ESTALE):
		return "the array does not export the volume to this node any more: " + volume.OneLine(err)
	case errors.Is(err, unix.EACCES):
		return "the array does not let this node at the volume: " + volume.OneLine(err)
	case errors.Is(err, unix.ETIMEDOUT):
		return "the array does not answer: " + volume.OneLine(err)
	}
	return ""
}
