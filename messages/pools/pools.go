// Package pools holds what the actors of the controller of the pools say to one another. The picture is in the package
// messages. No other program links it.
package pools

import (
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/messages"
)

// Requests name the kind of pools of the CSI driver that asks; empty means all. What is in a pool of another kind does not exist
// for that driver: the supervisor answers so, and deletes nothing.

// CreateVolume orders a volume to be made in a pool of the kind that New names. Front -> supervisor -> volume.
type CreateVolume struct {
	messages.Routing
	New pools.NewVolume
	messages.Reply[pools.Volume]
}

// RemoveVolume orders a volume to be deleted, on its array too. The supervisor refuses it while the
// volume is attached or has snapshots. Front -> supervisor -> volume.
type RemoveVolume struct {
	messages.Routing
	// Name is the volume's.
	Name string
	Kind pools.Kind
	messages.Reply[struct{}]
}

// GrowVolume orders a volume to have a size within bounds, in bytes; 0 sets no bound.
// Front -> supervisor -> volume.
type GrowVolume struct {
	messages.Routing
	Name            string
	Kind            pools.Kind
	Required, Limit int64
	messages.Reply[pools.Volume]
}

// AttachVolume orders a volume to be attached to a node. The supervisor refuses it while the volume is
// attached elsewhere and is not shared. Front -> supervisor -> attachment.
type AttachVolume struct {
	messages.Routing
	New  pools.NewAttachment
	Kind pools.Kind
	messages.Reply[pools.Attachment]
}

// DetachVolume orders a volume to be detached from a node. Front -> supervisor -> attachment.
type DetachVolume struct {
	messages.Routing
	Volume, Node string
	messages.Reply[struct{}]
}

// TakeSnapshot orders a snapshot of a volume. Front -> supervisor -> snapshot.
type TakeSnapshot struct {
	messages.Routing
	// Name is the one by which CSI asks, Volume the volume's name.
	Name, Volume string
	Kind         pools.Kind
	messages.Reply[pools.Snapshot]
}

// RemoveSnapshot orders a snapshot to be deleted, on its array too. Front -> supervisor -> snapshot.
type RemoveSnapshot struct {
	messages.Routing
	// Name is the snapshot's.
	Name string
	Kind pools.Kind
	messages.Reply[struct{}]
}

// FindVolume asks for a volume by its name. Front -> supervisor.
type FindVolume struct {
	Name string
	Kind pools.Kind
	messages.Reply[pools.Volume]
}

// ListVolumes asks for the volumes that there are on arrays. Front -> supervisor.
type ListVolumes struct {
	Kind pools.Kind
	Page pools.Page
	messages.Reply[VolumePage]
}

// VolumePage answers ListVolumes.
type VolumePage struct {
	Volumes []pools.Volume
	// More volumes come after these.
	More bool
}

// ListSnapshots asks for the snapshots that there are on arrays. Front -> supervisor.
type ListSnapshots struct {
	Selection pools.SnapshotSelection
	Kind      pools.Kind
	Page      pools.Page
	messages.Reply[SnapshotPage]
}

// SnapshotPage answers ListSnapshots.
type SnapshotPage struct {
	Snapshots []pools.Snapshot
	// More snapshots come after these.
	More bool
}

// UsePool asks for a pool's array, to change something there. It is refused while the pool cannot be
// reached, is not the array that it was, or has not been imported. Task -> supervisor -> pool.
type UsePool struct {
	messages.Routing
	Pool string
	messages.Reply[UsablePool]
}

// UsablePool answers UsePool.
type UsablePool struct {
	// Name is the pool's.
	Name  string
	Array array.Array
	// PoolID is the pool on the array; IQN and Portal are where initiators find it at present.
	PoolID, IQN, Portal string
	// CHAPSecret names the Secret with what initiators log in with.
	CHAPSecret string
	// Disk is what holds the pool, where that is on a node.
	Disk array.Disk
}

// DoubtPool says that a call of a pool's array got no answer, so that the array is asked at once how
// it is. Task -> supervisor -> pool.
type DoubtPool struct {
	messages.Routing
	Err error
	messages.Reply[struct{}]
}

// PoolTook says what the array of a pool has made of a request for a volume: one that it refused may be refused again.
// Task -> supervisor -> pool.
type PoolTook struct {
	messages.Routing
	Needs pools.Needs
	// Declined is why the array refused it; empty where it made the volume.
	Declined string
	messages.Reply[struct{}]
}

// ReservePool asks for a pool with room for a new volume, or for the growth of one, and reserves that there until
// ReleasePool.
// Where none has room, retained volumes are evicted before the answer. The same volume asks again without harm.
// Task -> classes.
type ReservePool struct {
	Volume string
	// Class is the volume's; empty means the default one.
	Class string
	// Pool is the only one that will do, such as that of the source; empty means any.
	Pool string
	// Kind is that of the pools that will do; empty means [pools.KindArray].
	Kind pools.Kind
	// Near are the pools of nodes that will do, identified by their UUIDs: lists, the best first. Empty means that any
	// will do.
	Near [][]string
	// Block: it is to be a block device. Copy: its data come from another one, or from a snapshot.
	Block, Copy bool
	// Bytes is the volume's size.
	Bytes int64
	// Protocol and Options are what the request says of them.
	Protocol pools.Protocol
	Options  map[string]string
	// Refused are pools whose arrays have just said that they have no room, whatever they said before. Declined are those
	// that have refused the volume for another reason, and why.
	Refused  []string
	Declined map[string]string
	// Growth: the volume is there, in Pool, and is to have so many bytes more. What is kept free of new volumes is for it.
	Growth bool
	messages.Reply[Reservation]
}

// Reservation answers ReservePool.
type Reservation struct {
	Class, Pool string
	// Protocol and the flags are what the class says of new volumes.
	Protocol pools.Protocol
	// Images: volumes of the pool, which is on a node, have a file system of their own.
	Images                    bool
	Compress, Dedupe, Encrypt bool
	Extra                     map[string]string
}

// ReleasePool gives a reservation back: the volume was made, or will not be. Task, owner -> classes.
type ReleasePool struct {
	Volume string
	// Made: the pool counts it as reserved until the array was asked anew.
	Made bool
	// Gone: the volume was deleted. Room that is kept for another one of its name, which is yet to be made, stays kept.
	Gone bool
}

// ClassCapacity asks what a class has room for. Front -> classes.
type ClassCapacity struct {
	// Class is empty for the default one.
	Class string
	// Kind and Near say which of its pools are meant, as in ReservePool.
	Kind pools.Kind
	Near [][]string
	// Block: it is asked for block devices.
	Block bool
	messages.Reply[pools.Capacity]
}
