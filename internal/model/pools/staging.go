package pools

import (
	"path/filepath"
	"slices"
)

// Staging describes a volume that is to be ready on a node, once for all pods there.
type Staging struct {
	// Volume is the volume's ID.
	Volume string
	// Path is the staging target path: a directory, on which a file system is mounted, or in which a block
	// volume's device is.
	Path string
	// Block: pods get a block device, else a file system.
	Block bool
	// FSType is the file system on an iSCSI volume that is not used as a block device.
	FSType   string
	ReadOnly bool
	// Options are mount options, as NFS and the file systems know them.
	Options []string
	// Attachment is how the node reaches the volume of an array.
	Attachment Attachment
	// Pool is the UUID of the pool that has the volume, where that is on the node.
	Pool string
}

// Same reports whether two stagings are the same in all that decides what comes of them.
func (s Staging) Same(o Staging) bool {
	return slices.Equal(s.Options, o.Options) && s.Volume == o.Volume && s.Path == o.Path && s.Block == o.Block && s.FSType == o.FSType &&
		s.ReadOnly == o.ReadOnly && s.Attachment == o.Attachment && s.Pool == o.Pool
}

// DeviceFile is the name of the file in the staging directory of a block volume on which its device is bound.
const DeviceFile = "device"

// StagedAt is where a volume is mounted that is staged at a path.
func StagedAt(path string, block bool) string {
	if block {
		return filepath.Join(path, DeviceFile)
	}
	return filepath.Clean(path)
}

// NodePublication describes a staged volume that a pod is to get.
type NodePublication struct {
	// Volume is the volume's ID; Staging the path at which it is staged.
	Volume, Staging string
	// Target is where the pod gets it: a directory, or the file of a block device.
	Target   string
	Block    bool
	ReadOnly bool
	// Options are flags of the mount, such as noexec.
	Options []string
	// OneTarget: no other pod of the node may use the volume at the same time.
	OneTarget bool
}

// Same reports whether two publications are the same in all that decides what comes of them.
func (p NodePublication) Same(o NodePublication) bool {
	return slices.Equal(p.Options, o.Options) && p.Volume == o.Volume && p.Staging == o.Staging && p.Target == o.Target &&
		p.Block == o.Block && p.ReadOnly == o.ReadOnly && p.OneTarget == o.OneTarget
}

// NodeExpansion describes a volume that has grown on its array, and is to be as large on a node.
type NodeExpansion struct {
	// Volume is the volume's ID; Path is where it is published or staged.
	Volume, Path string
	Block        bool
	// Required is the bytes that it has to have at least; 0 sets no bound.
	Required int64
}
