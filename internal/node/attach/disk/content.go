package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// Content returns what is on a device: empty when it is proven to be empty, else the type of the file system.
// Anything else, such as a partition table or data that blkid does not know, is attach.ErrNotOurs.
func (t Tools) Content(ctx context.Context, dev string) (string, error) {
	c, err := t.look(ctx, dev)
	if err != nil {
		return "", fmt.Errorf("what is on %s: %w", dev, err)
	}
	if c.strange != "" {
		return "", fmt.Errorf("%w: %s holds %s, and is left as it is", attach.ErrNotOurs, dev, c.strange)
	}
	return c.fsType, nil
}

// content is what is on a device. Nothing is on it if all is empty.
type content struct {
	// fsType is the file system's; strange says what else there is.
	fsType, strange string
	// unknown: there is data that blkid does not know.
	unknown bool
}

func (t Tools) look(ctx context.Context, dev string) (content, error) {
	if err := t.sameNode(dev); err != nil {
		return content{}, err
	}
	zeros, err := blankEnds(dev)
	if err != nil {
		return content{}, err
	}
	output, err := t.host().Run(ctx, host.Program{Name: "blkid", Args: []string{"-p", "-o", "export", dev}})
	// Exit status 2 is that it found nothing, or could not read the device, which was read just now.
	const nothing = 2
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == nothing && output == "" {
		err = nil
	}
	if err != nil {
		return content{}, err
	}
	c := parseBlkid(output)
	if c == (content{}) && !zeros {
		c = content{strange: "data that is no known file system", unknown: true}
	}
	return c, nil
}

// parseBlkid reads lines such as TYPE=ext4.
func parseBlkid(output string) (c content) {
	var table string
	for line := range strings.Lines(output) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "TYPE":
			c.fsType = value
		case "PTTYPE":
			table = value
		}
	}
	switch {
	case table != "":
		return content{strange: "a partition table (" + table + ")"}
	case c.fsType == "" && strings.TrimSpace(output) != "":
		return content{strange: "what blkid calls " + strings.Join(strings.Fields(output), " ")}
	}
	return c
}

// sameNode makes sure that the programs of the host see the same device at the path.
func (t Tools) sameNode(dev string) error {
	own, err := blockDevice(dev)
	if err != nil || t.Root == "" {
		return err
	}
	hosts, err := blockDevice(filepath.Join(t.Root, dev))
	if err == nil && own != hosts {
		err = fmt.Errorf("%s is device %d:%d, and %d:%d for the host", dev,
			unix.Major(own), unix.Minor(own), unix.Major(hosts), unix.Minor(hosts))
	}
	return err
}

// blockDevice returns the number of the device whose node is at a path.
func blockDevice(path string) (uint64, error) {
	st, err := kernel.Lstatat(unix.AT_FDCWD, path)
	switch {
	case err != nil:
		return 0, fmt.Errorf("stat %s: %w", path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFBLK:
		return 0, fmt.Errorf("%s is not the node of a block device", path)
	}
	return st.Rdev, nil
}

// ends is how much of a device has to be zeros at either end.
const ends = 64 << 10

// blankEnds reports whether the first and the last bytes of a device are zeros. It reads them from the device:
// what the kernel has in its memory may be older than what another node wrote.
func blankEnds(dev string) (bool, error) {
	file, err := kernel.Open(dev, os.O_RDONLY|unix.O_DIRECT)
	if err != nil {
		return false, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return false, fmt.Errorf("size of %s: %w", dev, err)
	}
	if size == 0 {
		return false, fmt.Errorf("%s has no bytes", dev)
	}
	part := aligned(int(min(size, ends)))
	for _, offset := range []int64{0, size - int64(len(part))} {
		if _, err := file.ReadAt(part, offset); err != nil {
			return false, err
		}
		for _, b := range part {
			if b != 0 {
				return false, nil
			}
		}
	}
	return true, nil
}

// aligned returns memory that the kernel reads a device into directly.
func aligned(size int) []byte {
	const page = 4096
	memory := make([]byte, size+page)
	skip := page - int(uintptr(unsafe.Pointer(&memory[0]))%page)
	return memory[skip : skip+size]
}
