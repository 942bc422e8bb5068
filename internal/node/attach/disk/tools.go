package disk

import (
	"fmt"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// Tools works on disks, with the programs of the host. It is safe for concurrent use on different devices and
// paths.
type Tools struct {
	// Root is the host's root directory, in which mkfs, fsck and blkid are run by chroot; empty to run
	// them without.
	Root string
	// Log gets what succeeded in a way that people want to know.
	Log logr.Logger
}

func (t Tools) host() host.Root { return host.Root(t.Root) }

// The file systems that disks of arrays may have.
const (
	ext4 = "ext4"
	xfs  = "xfs"
)

// known returns volume.ErrInvalid for a file system that is not known here.
func known(fsType string) error {
	if fsType == ext4 || fsType == xfs {
		return nil
	}
	return volume.Invalid("volume_capability.mount.fs_type", fmt.Sprintf("%.40q is neither %s nor %s", fsType, ext4, xfs))
}
