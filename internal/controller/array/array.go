package array

import "context"

// Array is one remote array. Its methods may be called at the same time, and repeated after any
// error. They end when the context does.
type Array interface {
	// Health asks what the array is, and what its pools hold. It changes nothing.
	Health(ctx context.Context) (Health, error)
	// Configure changes those settings of the array that Katbox needs to be different, and tells
	// which it has changed, in words for people.
	Configure(ctx context.Context) (changed []string, err error)

	// Volumes visits all volumes of the array, in pages.
	Volumes(ctx context.Context, visit func([]Volume) error) error
	// Snapshots visits all snapshots of the array, in pages.
	Snapshots(ctx context.Context, visit func([]Snapshot) error) error
	// Servers returns all server records.
	Servers(ctx context.Context) ([]Server, error)

	// Volume returns a volume by its ID; or ErrNotFound.
	Volume(ctx context.Context, id string) (Volume, error)
	// VolumeNamed returns the volume with a display name; or ErrNotFound.
	VolumeNamed(ctx context.Context, name string) (Volume, error)
	// CreateVolume makes a volume, unless there is one with its name already: that is returned as it
	// is, and the caller compares. A caller who has looked says so, which saves a request.
	CreateVolume(ctx context.Context, v NewVolume) (Volume, error)
	// CloneVolume makes a volume that holds what a snapshot or another volume holds, as large as
	// that, unless there is one with its name already. ErrNotFound: the source is gone.
	CloneVolume(ctx context.Context, c NewClone) (Volume, error)
	// GrowVolume makes a volume at least as large as said. It never shrinks one.
	GrowVolume(ctx context.Context, id string, to Size) (Volume, error)
	// CommentVolume changes a volume's comment.
	CommentVolume(ctx context.Context, id, comment string) error
	// DeleteVolume deletes a volume; one that does not exist is deleted. ErrAttached, ErrHasSnapshots:
	// it was not.
	DeleteVolume(ctx context.Context, id string) error

	// Snapshot returns a snapshot by its ID; or ErrNotFound.
	Snapshot(ctx context.Context, id string) (Snapshot, error)
	// CreateSnapshot takes a snapshot of a volume, unless the volume has one with its name already.
	// ErrNotFound: there is no such volume.
	CreateSnapshot(ctx context.Context, s NewSnapshot) (Snapshot, error)
	// DeleteSnapshot deletes a snapshot; one that does not exist is deleted.
	DeleteSnapshot(ctx context.Context, id string) error

	// EnsureServer returns the server record with the name, and makes it where there is none. One
	// with another IQN or address is changed where nothing is attached to it; else the error is
	// ErrAttached.
	EnsureServer(ctx context.Context, s NewServer) (Server, error)
	// DeleteServer deletes a server record; one that does not exist is deleted. ErrAttached: it was not.
	DeleteServer(ctx context.Context, id string) error

	// Attachments returns where a volume is attached. ErrNotFound: there is no such volume.
	Attachments(ctx context.Context, volumeID string) ([]Attachment, error)
	// Attach attaches a volume to a server record; one that is attached there already stays so, and its
	// attachment is returned as it is. ErrNotFound: there is no such volume, or no such server.
	Attach(ctx context.Context, a NewAttachment) (Attachment, error)
	// Detach detaches a volume from a server record. After nil the server's node can reach it no more,
	// or the volume or the server is gone.
	Detach(ctx context.Context, volumeID, serverID string) error
}
