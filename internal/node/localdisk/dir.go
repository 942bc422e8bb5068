package localdisk

import (
	"context"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/files"
)

// Shown are the files of a volume, for those who read them.
type Shown interface {
	// Tree opens the files. It is not called after End.
	Tree() (*files.Tree, error)
	// End takes away what Show has made. It is called once, and returns when nothing is left: after all trees and all
	// files that were opened through them are closed, where they keep the volume in use.
	End() error
}

// OpenTree opens the files of a volume with this record.
type OpenTree func(ctx context.Context, r local.Record) (*files.Tree, error)

// Dir is a pool's directory that was opened: what is done on the disk and with its mounts. Volumes and snapshots
// share one namespace of names. Every call may be repeated, also after a crash at any point of an earlier one.
// Those for one name come one after the other; those for different names come at the same time, and none waits for
// another. What hangs holds up nothing else.
type Dir interface {
	// Describe says what was found when it was opened, except Class and Provisioned. Failed is what the last Look has found.
	Describe() local.Pool
	// Look asks how full the disk is; not more is free than inodes are for. It writes a little, so that it learns, now or the
	// next time, that the disk takes no writes: then the error is [local.ErrUnwritable], and the rest is right. It is
	// [volume.ErrUnavailable] where the directory of the pool is not there any more.
	Look() (total, free int64, err error)
	// Close gives the directory back. It is called once, after all other calls.
	Close() error

	// Records returns those of all volumes and snapshots; Load one of them, or [volume.ErrNotFound], or
	// [volume.ErrUnavailable] where the disk cannot be read.
	Records() ([]local.Record, error)
	Load(name string) (local.Record, error)
	// Save is durable when it returns; so is Forget, of a record that may be gone already. [volume.ErrNoSpace]: the disk
	// is full. [local.ErrUnwritable]: nothing has changed.
	Save(local.Record) error
	Forget(name string) error

	// Make makes the data of a new volume or a snapshot. It begins with removing what an unfinished Make has left.
	// [volume.ErrNoSpace]: there is no room for it.
	Make(ctx context.Context, r local.Record) error
	// Grow makes a volume's data as large as its record says, wherever it is mounted. A file system that is mounted
	// nowhere grows with the next Stage and the Grow after that. [volume.ErrNoSpace]: there is no room for it.
	Grow(ctx context.Context, r local.Record) error
	// Trash moves the data of what is mounted nowhere to the trash; data that is not there is there.
	Trash(r local.Record) error
	// Erase frees the space of what is in the trash.
	Erase(ctx context.Context) error

	// Mounts returns the mounts of a volume in the mount table: those of its directory or its disk, and of the
	// disk's node.
	Mounts(table []attach.Mount, name string) ([]attach.Mount, error)
	// Stage makes a volume appear at a path: its file system, or at the file device in it the node of its disk. That
	// it is there already is no error; [volume.ErrConflict] if it is there with other flags, [attach.ErrNotOurs] if
	// something else is.
	Stage(ctx context.Context, r local.Record, path string, options []string, readOnly bool) error
	// Show makes the files of a volume that is staged nowhere readable, until the Shown has ended. They are not changed.
	// Of one volume there is one Shown at a time, and no Stage, Make or Trash comes before its End.
	// [volume.ErrInvalid]: volumes of its kind are not read, or this one cannot be without a change.
	Show(ctx context.Context, r local.Record) (Shown, error)
	// Stats measures a volume that is mounted at a path.
	Stats(r local.Record, path string) (volume.Stats, error)
}
