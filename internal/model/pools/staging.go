package pools

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

// NodeExpansion describes a volume that has grown on its array, and is to be as large on a node.
type NodeExpansion struct {
	// Volume is the volume's ID; Path is where it is published or staged.
	Volume, Path string
	Block        bool
	// Required is the bytes that it has to have at least; 0 sets no bound.
	Required int64
}
