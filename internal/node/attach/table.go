package attach

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/node/mount"
)

// Mount is a line of the mount table.
type Mount struct {
	// Target is the mount point.
	Target string
	// Root is the path inside the file system that is mounted: / for a whole file system, and /sda for a
	// device's node of devtmpfs. It ends in //deleted when that path has been removed since.
	Root string
	// FSType is the type of the file system, such as nfs4 or xfs; Source is what it was mounted from,
	// such as 10.0.0.1:/export/x or /dev/sda.
	FSType, Source string
	// Device is the number of the file system's device.
	Device uint64
	// ReadOnly: the mount or its whole file system refuses writes.
	ReadOnly bool
	// Flags are the mount's own, such as noexec. Options are the file system's, as it shows them; all mounts
	// of it have the same.
	Flags, Options []string
}

// Table reads the mount table of this process, older mounts before those on top of them. It asks no file
// system, and so does not hang while a server is away.
func Table() ([]Mount, error) {
	all, err := mount.All()
	if err != nil {
		return nil, fmt.Errorf("which volumes are mounted: %w", err)
	}
	table := make([]Mount, 0, len(all))
	for _, info := range all {
		flags, options := strings.Split(info.Options, ","), strings.Split(info.VFSOptions, ",")
		table = append(table, Mount{
			Target: info.Mountpoint, Root: info.Root, FSType: info.FSType, Source: info.Source,
			Device:   unix.Mkdev(uint32(info.Major), uint32(info.Minor)),
			ReadOnly: slices.Contains(flags, "ro") || slices.Contains(options, "ro"),
			Flags:    flags, Options: options,
		})
	}
	return table, nil
}

// At returns the topmost mount at a path, and whether there is one. The path is absolute and leads through
// no symbolic links: [Table] shows none. To resolve them could ask a file system that hangs.
func At(table []Mount, path string) (Mount, bool) {
	path = filepath.Clean(path)
	for _, m := range slices.Backward(table) {
		if m.Target == path {
			return m, true
		}
	}
	return Mount{}, false
}
