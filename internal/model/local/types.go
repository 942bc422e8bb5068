package local

import (
	"context"
	"time"
)

// Pool is a directory of a node in which volumes are made.
type Pool struct {
	UUID string `json:"uuid"`
	// Key proves that the node that describes the pool has its disk; empty where the disk has none yet.
	Key Key `json:"key,omitempty"`
	// Class is the PoolClass that the node's administrator wants it in.
	Class string `json:"class"`
	Path  string `json:"path"`
	// Backend keeps the volumes; see the constants. FSType is the disk's file system.
	Backend Backend `json:"backend"`
	FSType  string  `json:"fsType"`
	// HardLimit: no pod can write more into a volume than its size, and each finds room for that; images alone have that, and
	// on btrfs only without copies. Block: volumes may be block devices.
	// Copies: there are snapshots, and volumes made from them and from others.
	HardLimit bool `json:"hardLimit,omitempty"`
	Block     bool `json:"block,omitempty"`
	Copies    bool `json:"copies,omitempty"`
	// Total and Free are bytes of the disk; Provisioned is promised to volumes and snapshots, the retained
	// ones among them.
	Total       int64 `json:"total"`
	Free        int64 `json:"free"`
	Provisioned int64 `json:"provisioned"`
	// Failed says what is wrong with it, such as a disk that is not there; empty when nothing is.
	Failed string `json:"failed,omitempty"`
}

// Backend is how a pool keeps volumes.
type Backend string

// The backends.
const (
	// Auto takes btrfs where the disk has it, else project quotas where the disk enforces them, else images.
	Auto Backend = "auto"
	// ProjectQuota: a directory of XFS or ext4, limited by a project quota.
	ProjectQuota Backend = "projectQuota"
	// Image: a file that a loop device makes a disk of.
	Image Backend = "image"
	// Btrfs: a subvolume, limited by a quota group, which does not count subvolumes that a pod makes in none.
	Btrfs Backend = "btrfs"
)

// Volume is a volume in a pool.
type Volume struct {
	// Name is that of its PoolVolume.
	Name    string `json:"name"`
	Pool    string `json:"pool"` // the UUID
	Size    int64  `json:"size"` // bytes; one that grows has the former size until that is over
	Block   bool   `json:"block,omitempty"`
	FSType  string `json:"fsType,omitempty"`
	Comment string `json:"comment,omitempty"`
	Source  Source `json:"source,omitzero"`
	// Ready: it is whole. One that is being made, or copied, is not yet.
	Ready bool `json:"ready"`
	// InUse: it is staged, or mounted for a pod.
	InUse bool `json:"inUse,omitempty"`
	// HasSnapshots: it cannot be deleted before those are.
	HasSnapshots bool      `json:"hasSnapshots,omitempty"`
	Created      time.Time `json:"created"`
}

// Source is what a volume's data came from: one of the two, or neither. Both are in the same pool.
type Source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// NewVolume describes a volume to be made.
type NewVolume struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"` // bytes
	Block   bool   `json:"block,omitempty"`
	FSType  string `json:"fsType,omitempty"`
	Comment string `json:"comment,omitempty"`
	Source  Source `json:"source,omitzero"`
}

// Snapshot is a snapshot of a volume.
type Snapshot struct {
	Name    string    `json:"name"`
	Pool    string    `json:"pool"`
	Volume  string    `json:"volume"`
	Size    int64     `json:"size"` // bytes that a volume made from it has at least
	Created time.Time `json:"created"`
	Ready   bool      `json:"ready"`
}

// Pools is what a node does with the pools on its disks, for the controller. Every call may be repeated. A pool is
// identified by its UUID; one that is not there is [volume.ErrUnavailable]. Errors are those of internal/model/volume and
// internal/model/pools: ErrNotFound, ErrConflict, ErrNoSpace, ErrInvalid, ErrBusy, ErrUnavailable, ErrInUse, ErrOutOfRange.
type Pools interface {
	// Pools describes all pools of the node.
	Pools(ctx context.Context) ([]Pool, error)
	// Volumes returns at most limit volumes of a pool by their names, those after a name.
	Volumes(ctx context.Context, pool, after string, limit int) ([]Volume, error)
	Volume(ctx context.Context, pool, name string) (Volume, error)
	// CreateVolume makes a volume, unless there is one with its name already: that is returned as it is, and the
	// caller compares. It is answered when the volume is whole, or with ErrBusy while that takes longer.
	CreateVolume(ctx context.Context, pool string, v NewVolume) (Volume, error)
	// GrowVolume makes a volume at least as large as said. It never shrinks one.
	GrowVolume(ctx context.Context, pool, name string, bytes int64) (Volume, error)
	// CommentVolume changes a volume's comment, durably. One whose comment says that it is retained is not
	// staged; the change to that is refused with ErrInUse while it is in use.
	CommentVolume(ctx context.Context, pool, name, comment string) (Volume, error)
	// DeleteVolume deletes a volume; one that does not exist is deleted. ErrInUse: it is in use, or has snapshots.
	// Its data is in the trash when the call returns; freeing the space comes after.
	DeleteVolume(ctx context.Context, pool, name string) error
	Snapshots(ctx context.Context, pool, after string, limit int) ([]Snapshot, error)
	Snapshot(ctx context.Context, pool, name string) (Snapshot, error)
	// CreateSnapshot takes a snapshot of a volume, unless there is one with its name already.
	CreateSnapshot(ctx context.Context, pool, name, of string) (Snapshot, error)
	DeleteSnapshot(ctx context.Context, pool, name string) error
}
