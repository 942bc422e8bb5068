// Package localmessages holds what the actors of pools on a node's own disks say to one another. The picture is in the package
// messages. Only the daemon links it.
package localmessages

import (
	"context"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/localdisk"
	"github.com/katbox/katbox/messages"
)

// MakeLocal orders a volume to be made in a pool of the node. Front -> supervisor -> volume.
type MakeLocal struct {
	messages.Routing
	// Pool is the pool's UUID.
	Pool string
	New  local.NewVolume
	messages.Reply[local.Volume]
}

// GrowLocal orders a volume to have at least so many bytes. Front -> supervisor -> volume.
type GrowLocal struct {
	messages.Routing
	Pool, Name string
	Bytes      int64
	messages.Reply[local.Volume]
}

// CommentLocal orders a volume to have a comment, which may say that it is retained.
// Front -> supervisor -> volume.
type CommentLocal struct {
	messages.Routing
	Pool, Name, Comment string
	messages.Reply[local.Volume]
}

// SnapshotLocal orders a snapshot of a volume to be made. Front -> supervisor -> snapshot.
type SnapshotLocal struct {
	messages.Routing
	Pool, Name, Of string
	messages.Reply[local.Snapshot]
}

// DeleteLocal orders a volume or a snapshot to be deleted. Front -> supervisor -> volume, snapshot.
type DeleteLocal struct {
	messages.Routing
	Pool, Name string
	// Snapshot: it is a snapshot.
	Snapshot bool
	messages.Reply[struct{}]
}

// LocalPools asks what pools there are. Front -> keeper.
type LocalPools struct {
	// Usable: only those whose disks are there. Missing: also the directories that were no pool since the start.
	Usable, Missing bool
	messages.Reply[[]local.Pool]
}

// UseLocal asks for a pool's directory, to read or change something there: that of the pool with a UUID, or, where
// that is not known, of the pool that has what is called Name. Task, front -> keeper.
type UseLocal struct {
	Pool, Name string
	messages.Reply[UsableLocal]
}

// UsableLocal answers UseLocal.
type UsableLocal struct {
	localdisk.Dir
	// UUID is the pool's.
	UUID string
	// Release is called once the directory is not used any more.
	Release func()
}

// ReserveLocal asks for room for a volume or a snapshot that is to be made, or for more of it for one that is to grow
// to the size of this record. It is refused where the pool has not promised so little, and where the source of a new
// one is not there. The same record asks again without harm. Task -> keeper.
type ReserveLocal struct {
	Pool   string
	Record local.Record
	messages.Reply[struct{}]
}

// SettleLocal says what the record of a volume or a snapshot is now. Task -> keeper.
type SettleLocal struct {
	Pool   string
	Record local.Record
}

// ClaimLocal asks whether a volume or a snapshot may be deleted: nothing was made of it that needs it. From then on
// nothing is, until SettleLocal or ForgetLocal. Task -> keeper.
type ClaimLocal struct {
	Pool, Name string
	messages.Reply[struct{}]
}

// ForgetLocal says that a volume or a snapshot is gone. Task -> keeper.
type ForgetLocal struct{ Pool, Name string }

// ListLocal asks for the names of at most Limit (0: all) volumes or snapshots of a pool that come after a name; or for
// the one that is called Only. Task, front -> keeper.
type ListLocal struct {
	Pool, After string
	Only        string
	Snapshots   bool
	Limit       int
	messages.Reply[[]LocalName]
}

// LocalName is what the keeper knows of a volume or a snapshot.
type LocalName struct {
	Name string
	// HasSnapshots: it is a volume that has some.
	HasSnapshots bool
}

// RetainedLocal asks for the volumes that are kept without a claim, the one that was retained last first. The answer
// is not changed by anyone. Front -> keeper.
type RetainedLocal struct {
	messages.Reply[[]volume.Description]
}

// ReadLocal asks for permission to read a volume that is kept without a claim, until EndReadLocal. It is refused with
// [volume.ErrNotFound] where no pool has such a volume, and with [volume.ErrNotRetained] or [volume.ErrGone] where it
// is retained no more. Front -> keeper.
type ReadLocal struct {
	Name string
	messages.Reply[LocalLease]
}

// LocalLease answers ReadLocal.
type LocalLease struct {
	UsableLocal
	volume.Description
	// Open opens the files of the volume. It reaches the disk.
	Open localdisk.OpenTree
	// Lost ends when a claim gets the volume back, when it is deleted, or when its disk is away; its cause says which.
	// The reader then ends within seconds: a stage and a deletion of an image wait for that, but not for long.
	Lost context.Context
}

// EndReadLocal says that a reading has ended, or that its answer is not waited for. Front -> keeper.
type EndReadLocal struct{ Begun *ReadLocal }

// UnshowLocal says that a volume is about to be staged or deleted. The answer is closed once no reader keeps it in use;
// nil if there is none. Task -> keeper.
type UnshowLocal struct {
	Name string
	messages.Reply[<-chan struct{}]
}

// LocalUnfinished names what earlier runs have begun to make or to delete in a pool that was opened. Keeper ->
// supervisor, which wakes their actors.
type LocalUnfinished struct {
	Pool               string
	Volumes, Snapshots []string
}
