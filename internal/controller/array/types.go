package array

import (
	"fmt"
	"math"
	"time"
)

// Size is a number of bytes. Arrays count in units: what is asked of one is a whole multiple of its unit.
type Size int64

// The units.
const (
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// Bytes returns the size in bytes.
func (s Size) Bytes() int64 { return int64(s) }

// In returns how many of a unit hold the size.
func (s Size) In(unit Size) int64 {
	if s <= 0 {
		return 0
	}
	return int64((s-1)/unit) + 1
}

// Up returns the smallest multiple of a unit that holds the size; of a size that no array has, that size.
func (s Size) Up(unit Size) Size {
	if n := s.In(unit); n <= math.MaxInt64/int64(unit) {
		return Size(n) * unit
	}
	return s
}

// String is for people.
func (s Size) String() string {
	switch {
	case s == 0 || s%MiB != 0:
		return fmt.Sprintf("%d bytes", int64(s))
	case s%GiB != 0:
		return fmt.Sprintf("%d MiB", int64(s/MiB))
	}
	return fmt.Sprintf("%d GiB", int64(s/GiB))
}

// Health is what an array says of itself.
type Health struct {
	// Version of the array's software, such as "22.06-sp1-123".
	Version string
	// IQN is the array's iSCSI target; Portal the address and port of it at present.
	IQN, Portal string
	// CHAP is what initiators log in with.
	CHAP CHAP
	// Pools of the array's disks.
	Pools []Pool
	// Disk is what holds the pool, where that is on a disk of a node.
	Disk Disk
}

// Disk is a directory on a disk of a node.
type Disk struct {
	Node, Path      string
	Backend, FSType string
	// KeyHash is the hash of the secret that the disk has; empty where it has none.
	KeyHash string
	// HardLimit: no pod can write more into a volume than its size. Block: volumes may be block devices. Images:
	// each has a file system of its own. Copies: there are snapshots, and volumes made from them and from others.
	HardLimit, Block, Images, Copies bool
}

// CHAP is a user and a secret for iSCSI logins. It prints as nothing that can be used.
type CHAP struct{ User, Secret string }

// String hides the secret.
func (c CHAP) String() string { return "CHAP user " + c.User }

// Format hides the secret, for every verb.
func (c CHAP) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalText hides the secret from logs that write objects as JSON.
func (c CHAP) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Pool is one pool of an array's disks.
type Pool struct {
	ID, Name string
	// Total, Available and Provisioned are bytes: the size of the pool, what is free, and what has
	// been promised to volumes, which are thin.
	Total, Available, Provisioned int64
	// Mode is the array's own word for how full it is; empty where it has none.
	Mode Mode
	// Failed says what is wrong with the pool; empty when nothing is.
	Failed string
}

// Mode tells how full a pool is. A later one is worse.
type Mode string

// The modes, from the best to the worst.
const (
	Normal    Mode = "normal"
	Alert     Mode = "alert"
	Protected Mode = "protected"
	Emergency Mode = "emergency"
)

// Volume is a volume on an array.
type Volume struct {
	// ID is the array's, such as volume-00000001; Name the display name; Group the consistency group,
	// such as cg-00000001.
	ID, Name, Group string
	PoolID          string
	Comment         string
	Size            Size
	// Block: it is reached over iSCSI; else over NFS, at Export, such as 10.0.0.1:/export/x. One on a disk of a
	// node is a block device, or a file system.
	Block  bool
	Export string
	// Status is the array's word; Usable reports whether the volume can be used as it is.
	Status string
	Usable bool
	// Servers are the IDs of the server records to which it is attached.
	Servers      []string
	HasSnapshots bool
	// Encrypted: so the array can encrypt volumes.
	Encrypted bool
}

// NewVolume describes a volume to be made.
type NewVolume struct {
	Name, PoolID, Comment string
	Size                  Size
	Block                 bool
	// FSType is the file system on it, where that is made with it.
	FSType           string
	Compress, Dedupe bool
	Encrypt          bool
	// Options are further fields of the array's own request.
	Options map[string]string
	// NameFree: the caller has just looked, and no volume has the name.
	NameFree bool
}

// NewClone describes a volume to be made from another one, or from a snapshot of it.
type NewClone struct {
	Name, Comment string
	// Group is the consistency group of the source volume; SnapshotID one of its snapshots, or empty.
	Group, SnapshotID string
	// NameFree: the caller has just looked, and no volume has the name.
	NameFree bool
}

// Snapshot is a snapshot on an array.
type Snapshot struct {
	ID, Name string
	// VolumeID is empty where the array does not tell; Group is the volume's consistency group.
	VolumeID, Group string
	PoolID          string
	// Size is the volume's; 0 where the array does not tell.
	Size    Size
	Created time.Time
	// Status is the array's word; Usable reports whether the snapshot can be used.
	Status string
	Usable bool
}

// NewSnapshot describes a snapshot to be taken.
type NewSnapshot struct{ Name, VolumeID string }

// Server is an array's record of a node that volumes can be attached to.
type Server struct {
	ID, Name string
	// IQN is the node's iSCSI initiator, Address its IP for NFS; either may be empty.
	IQN, Address string
}

// NewServer describes a server record to be made.
type NewServer struct{ Name, IQN, Address string }

// Attachment is a volume that is attached to a server record.
type Attachment struct {
	ServerID, VolumeID string
	ReadOnly           bool
	// Target and LUN are where an initiator finds a block volume.
	Target string
	LUN    int
}

// NewAttachment describes an attachment to be made.
type NewAttachment struct {
	ServerID, VolumeID string
	// NFS: the volume is reached over NFS, else over iSCSI.
	NFS      bool
	ReadOnly bool
}
