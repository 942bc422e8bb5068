package onarray

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// pageSize is how many volumes or snapshots a node is asked for at once.
const pageSize = 1000

// pool is one pool of a node.
type pool struct {
	node, version, uuid string
	on                  local.Pools
}

// New returns the pool with a UUID on a node, whose daemon has a version. It does no I/O.
func New(node, version, uuid string, on local.Pools) array.Array {
	return &pool{node: node, version: version, uuid: uuid, on: on}
}

// errNoServers answers what is asked of servers.
var errNoServers = fmt.Errorf("%w: a pool on a node has no servers that volumes are attached to", array.ErrRefused)

// failure is an error of one of the kinds of package array, in the words of the node: the kinds' are of arrays.
type failure struct{ kind, cause error }

func of(kind, cause error) error { return &failure{kind, cause} }

func (f *failure) Error() string { return f.cause.Error() }

// Unwrap is for package errors.
func (f *failure) Unwrap() []error { return []error{f.kind, f.cause} }

// read makes an error of a question.
func read(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, volume.ErrNotFound):
		return of(array.ErrNotFound, err)
	case errors.Is(err, context.DeadlineExceeded):
		return of(array.ErrTimeout, fmt.Errorf("the node has not answered in time: %w", err))
	case errors.Is(err, volume.ErrUnavailable):
		return of(array.ErrUnreachable, err)
	case errors.Is(err, volume.ErrBusy):
		return of(array.ErrBusy, err)
	}
	return err
}

// changed makes an error of a change. Whether it was made is open where no answer has come.
func changed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, volume.ErrUncertain), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return of(array.ErrUncertain, err)
	case errors.Is(err, volume.ErrNoSpace):
		return of(array.ErrNoRoom, err)
	case errors.Is(err, volume.ErrConflict):
		return of(array.ErrExists, err)
	case errors.Is(err, pools.ErrInUse):
		return of(array.ErrAttached, err)
	case errors.Is(err, volume.ErrInvalid), errors.Is(err, pools.ErrOutOfRange):
		return of(array.ErrRefused, err)
	}
	return read(err)
}

// Health asks the node for its pools. The array's identity is the pool's UUID.
func (p *pool) Health(ctx context.Context) (array.Health, error) {
	all, err := p.on.Pools(ctx)
	switch {
	case errors.Is(err, volume.ErrUnavailable):
		return array.Health{}, fmt.Errorf("%w: node %s: %w", array.ErrNodeAway, p.node, err)
	case err != nil:
		return array.Health{}, read(err)
	}
	for _, one := range all {
		if one.UUID != p.uuid {
			continue
		}
		if one.Failed != "" {
			return array.Health{}, fmt.Errorf("%w: %s on node %s: %s", array.ErrDiskAway, one.Path, p.node, one.Failed)
		}
		return array.Health{
			Version: p.version, IQN: p.uuid,
			Pools: []array.Pool{{ID: p.uuid, Name: one.Path, Total: one.Total, Available: one.Free, Provisioned: one.Provisioned}},
			Disk: array.Disk{
				Node: p.node, Path: one.Path, Backend: string(one.Backend), FSType: one.FSType, KeyHash: one.Key.Hash(),
				HardLimit: hardLimit(one), Block: one.Block, Images: one.Backend == local.Image, Copies: one.Copies,
			},
		}, nil
	}
	return array.Health{}, fmt.Errorf("%w: node %s has no pool with the UUID %s", array.ErrDiskAway, p.node, p.uuid)
}

// Configure has nothing to change.
func (p *pool) Configure(context.Context) ([]string, error) { return nil, nil }

// words is a volume as an array has it.
func words(v local.Volume) array.Volume {
	status := "making"
	switch {
	case v.Ready && v.InUse:
		status = "in use"
	case v.Ready:
		status = "ready"
	}
	return array.Volume{
		ID: v.Name, Name: v.Name, Group: v.Name, PoolID: v.Pool, Comment: v.Comment, Size: array.Size(v.Size), Block: v.Block,
		Status: status, Usable: v.Ready, HasSnapshots: v.HasSnapshots,
	}
}

// snapshotWords is a snapshot as an array has it.
func snapshotWords(s local.Snapshot) array.Snapshot {
	status := "making"
	if s.Ready {
		status = "ready"
	}
	return array.Snapshot{
		ID: s.Name, Name: s.Name, VolumeID: s.Volume, Group: s.Volume, PoolID: s.Pool, Size: array.Size(s.Size), Created: s.Created,
		Status: status, Usable: s.Ready,
	}
}

// pages visits what list returns, page by page. name tells after which the next one begins.
func pages[T, W any](
	ctx context.Context, list func(ctx context.Context, pool, after string, limit int) ([]T, error), uuid string,
	name func(T) string, words func(T) W, visit func([]W) error,
) error {
	for after := ""; ; {
		page, err := list(ctx, uuid, after, pageSize)
		if err != nil {
			return read(err)
		}
		all := make([]W, 0, len(page))
		for _, one := range page {
			all = append(all, words(one))
		}
		if err := visit(all); err != nil || len(page) < pageSize {
			return err
		}
		after = name(page[len(page)-1])
	}
}

// Volumes visits all volumes, in pages.
func (p *pool) Volumes(ctx context.Context, visit func([]array.Volume) error) error {
	return pages(ctx, p.on.Volumes, p.uuid, func(v local.Volume) string { return v.Name }, words, visit)
}

// Snapshots visits all snapshots, in pages.
func (p *pool) Snapshots(ctx context.Context, visit func([]array.Snapshot) error) error {
	return pages(ctx, p.on.Snapshots, p.uuid, func(s local.Snapshot) string { return s.Name }, snapshotWords, visit)
}

// Servers returns none.
func (p *pool) Servers(context.Context) ([]array.Server, error) { return nil, nil }

// Volume returns a volume by its ID, which is its name.
func (p *pool) Volume(ctx context.Context, id string) (array.Volume, error) {
	v, err := p.on.Volume(ctx, p.uuid, id)
	return words(v), read(err)
}

// VolumeNamed returns the volume with a name.
func (p *pool) VolumeNamed(ctx context.Context, name string) (array.Volume, error) {
	return p.Volume(ctx, name)
}

// CreateVolume makes a volume, unless there is one with its name already.
func (p *pool) CreateVolume(ctx context.Context, v array.NewVolume) (array.Volume, error) {
	made, err := p.on.CreateVolume(ctx, p.uuid, local.NewVolume{
		Name: v.Name, Size: v.Size.Bytes(), Block: v.Block, FSType: v.FSType, Comment: v.Comment,
	})
	return words(made), changed(err)
}

// CloneVolume makes a volume that holds what another one, or a snapshot, does. It is as large as that, and has its
// file system.
func (p *pool) CloneVolume(ctx context.Context, c array.NewClone) (array.Volume, error) {
	made := local.NewVolume{Name: c.Name, Comment: c.Comment, Source: local.Source{Volume: c.Group}}
	of, err := p.on.Volume(ctx, p.uuid, c.Group)
	if err != nil {
		return array.Volume{}, read(err)
	}
	made.Size, made.Block, made.FSType = of.Size, of.Block, of.FSType
	if c.SnapshotID != "" {
		s, err := p.on.Snapshot(ctx, p.uuid, c.SnapshotID)
		if err != nil {
			return array.Volume{}, read(err)
		}
		made.Size, made.Source = s.Size, local.Source{Snapshot: c.SnapshotID}
	}
	v, err := p.on.CreateVolume(ctx, p.uuid, made)
	return words(v), changed(err)
}

// GrowVolume makes a volume at least as large as said.
func (p *pool) GrowVolume(ctx context.Context, id string, to array.Size) (array.Volume, error) {
	v, err := p.on.GrowVolume(ctx, p.uuid, id, to.Bytes())
	return words(v), changed(err)
}

// CommentVolume changes a volume's comment.
func (p *pool) CommentVolume(ctx context.Context, id, comment string) error {
	_, err := p.on.CommentVolume(ctx, p.uuid, id, comment)
	return changed(err)
}

// DeleteVolume deletes a volume.
func (p *pool) DeleteVolume(ctx context.Context, id string) error {
	return changed(p.on.DeleteVolume(ctx, p.uuid, id))
}

// Snapshot returns a snapshot by its ID, which is its name.
func (p *pool) Snapshot(ctx context.Context, id string) (array.Snapshot, error) {
	s, err := p.on.Snapshot(ctx, p.uuid, id)
	return snapshotWords(s), read(err)
}

// CreateSnapshot takes a snapshot. One of the name that another volume has is an error.
func (p *pool) CreateSnapshot(ctx context.Context, s array.NewSnapshot) (array.Snapshot, error) {
	taken, err := p.on.CreateSnapshot(ctx, p.uuid, s.Name, s.VolumeID)
	if err == nil && taken.Volume != s.VolumeID {
		err = fmt.Errorf("%w: snapshot %s is of volume %s", array.ErrExists, s.Name, taken.Volume)
	}
	return snapshotWords(taken), changed(err)
}

// DeleteSnapshot deletes a snapshot.
func (p *pool) DeleteSnapshot(ctx context.Context, id string) error {
	return changed(p.on.DeleteSnapshot(ctx, p.uuid, id))
}

// EnsureServer is refused.
func (p *pool) EnsureServer(context.Context, array.NewServer) (array.Server, error) {
	return array.Server{}, errNoServers
}

// DeleteServer has nothing to delete.
func (p *pool) DeleteServer(context.Context, string) error { return nil }

// Attachments returns none.
func (p *pool) Attachments(ctx context.Context, volumeID string) ([]array.Attachment, error) {
	_, err := p.Volume(ctx, volumeID)
	return nil, err
}

// Attach is refused.
func (p *pool) Attach(context.Context, array.NewAttachment) (array.Attachment, error) {
	return array.Attachment{}, errNoServers
}

// Detach has nothing to detach: no volume is attached.
func (p *pool) Detach(context.Context, string, string) error { return nil }

// hardLimit reports whether no pod can write more into a volume than its size, and each finds room for that. Earlier daemons
// say so of btrfs, too, and of images there that are copied.
func hardLimit(p local.Pool) bool {
	return p.HardLimit && p.Backend != local.Btrfs && (p.FSType != "btrfs" || !p.Copies)
}
