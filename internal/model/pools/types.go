package pools

import "time"

// Protocol is how nodes reach a volume.
type Protocol string

// The protocols.
const (
	NFS   Protocol = "nfs"
	ISCSI Protocol = "iscsi"
	// Local: the volume is on a disk of the node itself.
	Local Protocol = "local"
)

// Kind returns the kind of the pools whose volumes nodes reach in this way.
func (p Protocol) Kind() Kind {
	if p == Local {
		return KindLocal
	}
	return KindArray
}

// Kind is what a pool is; each kind has a CSI driver of its own.
type Kind string

// The kinds.
const (
	KindArray Kind = "array"
	KindLocal Kind = "local"
)

// Unit is what the sizes of volumes in pools of the kind are whole multiples of, in bytes.
func (k Kind) Unit() int64 {
	if k == KindLocal {
		return 1 << 20
	}
	return 1 << 30
}

// Claim is the PersistentVolumeClaim that a volume is made for; empty where that is not known.
type Claim struct{ Namespace, Name string }

// Source is what a new volume's data comes from: one of the two, or neither.
type Source struct{ Snapshot, Volume string }

// NewVolume describes a volume to be made.
type NewVolume struct {
	// Name is CSI's: the same name is the same volume.
	Name string
	// Class is the PoolClass; empty means the default one.
	Class string
	// Kind says which driver asks: pools of the other kind take nothing.
	Kind Kind
	// Near are the pools of nodes that will do, identified by their UUIDs: a list for each node, the best first.
	// Empty means that any will do.
	Near [][]string
	// Required and Limit bound the size in bytes; 0 sets no bound.
	Required, Limit int64
	// Block: pods get a block device, else a file system.
	Block bool
	// Protocol for a volume with a file system; empty means what the class says. Block volumes are
	// always reached over iSCSI.
	Protocol Protocol
	// FSType is the file system on an iSCSI volume; empty means ext4.
	FSType string
	// Shared: pods on several nodes may use it at the same time.
	Shared bool
	// Options are further fields of the array's own request.
	Options map[string]string
	Source  Source
	Claim   Claim
}

// Volume is a volume that there is.
type Volume struct {
	// ID is the name of its PoolVolume.
	ID string
	// Size is in bytes.
	Size     int64
	Class    string
	Pool     string
	Block    bool
	Protocol Protocol
	FSType   string
	Source   Source
	// On is the UUID of its pool, where that is on a node.
	On string
	// Nodes are those that it is attached to.
	Nodes []string
}

// NewAttachment describes an attachment to be made.
type NewAttachment struct {
	// Volume is the volume's ID, Node the node's name.
	Volume, Node string
	ReadOnly     bool
	// Shared: it may be attached to other nodes at the same time.
	Shared bool
}

// Attachment is a volume that is attached to a node. It holds no secrets.
type Attachment struct {
	Volume, Node string
	Protocol     Protocol
	ReadOnly     bool
	// Export is where an NFS client mounts it from, such as 10.0.0.1:/export/x.
	Export string
	// Target, Portal and LUN are where an iSCSI initiator finds it. Serial is the array's ID of the volume, which many
	// arrays give its disk as the serial number. WWID is what the disk is known by where that is not so; empty where it
	// is not known.
	Target, Portal, Serial, WWID string
	LUN                          int
	// CHAPSecret names the Secret with the user and the secret of the login.
	CHAPSecret string
	FSType     string
}

// Snapshot is a snapshot of a volume.
type Snapshot struct {
	// ID is the name of its PoolSnapshot; Volume the ID of its volume.
	ID, Volume string
	// Size is the bytes that a volume made from it has at least.
	Size    int64
	Created time.Time
	// Ready: a volume can be made from it.
	Ready bool
}

// SnapshotSelection says which snapshots are listed: one, those of a volume, or all.
type SnapshotSelection struct{ ID, Volume string }

// Page is a part of a list: at most Limit items (0: all) whose IDs come after After.
type Page struct {
	After string
	Limit int
}

// Wanted says which room is meant: that of the pools of a class and a kind, for volumes as in NewVolume.
type Wanted struct {
	// Class is empty for the default one.
	Class string
	Kind  Kind
	Near  [][]string
	Block bool
}

// Capacity is what a class has room for.
type Capacity struct {
	// Available is the bytes for new volumes in all pools; Largest is the largest volume that one of
	// them takes.
	Available, Largest int64
}
