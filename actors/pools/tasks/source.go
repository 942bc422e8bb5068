package tasks

import (
	"cmp"
	"context"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// source is what a new volume's data comes from.
type source struct {
	class, pool string
	block       bool
	protocol    v1alpha1.Protocol
	size        array.Size
	// group, volumeID and snapshotID are the array's.
	group, volumeID, snapshotID string
	// fsType is the file system that nodes made on it; empty where they made none, or that is not known.
	fsType string
}

// findSource looks the source of a new volume up. nil: there is none.
func (t *task) findSource(ctx context.Context, from pools.Source) (*source, error) {
	switch {
	case from.Snapshot != "":
		return t.snapshotSource(ctx, from.Snapshot)
	case from.Volume != "":
		return t.volumeSource(ctx, from.Volume)
	}
	return nil, nil
}

func (t *task) volumeSource(ctx context.Context, name string) (*source, error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, name, v)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, rules.Errorf(volume.ErrNotFound, "there is no PoolVolume %s to make a volume from", name)
	case v.DeletionTimestamp != nil:
		return nil, rules.Errorf(volume.ErrBusy, "volume %s, to make a volume from, is being deleted", name)
	case v.Status.State != v1alpha1.VolumeReady:
		return nil, rules.Errorf(volume.ErrBusy, "volume %s, to make a volume from, is not Ready", name)
	}
	return &source{
		class: v.Spec.ClassName, pool: v.Spec.PoolName, block: rules.OnDevice(v), protocol: v.Spec.Protocol,
		size: array.Size(v.Status.Capacity.Value()), group: v.Status.GroupID, volumeID: v.Status.ID, fsType: v.Spec.FSType,
	}, nil
}

// snapshotSource needs the snapshot's volume, which cannot be deleted while there is the snapshot.
func (t *task) snapshotSource(ctx context.Context, name string) (*source, error) {
	s := &v1alpha1.PoolSnapshot{}
	found, err := t.read(ctx, name, s)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, rules.Errorf(volume.ErrNotFound, "there is no PoolSnapshot %s to make a volume from", name)
	case s.DeletionTimestamp != nil:
		return nil, rules.Errorf(volume.ErrBusy, "snapshot %s, to make a volume from, is being deleted", name)
	case s.Status.State != v1alpha1.SnapshotReady:
		return nil, rules.Errorf(volume.ErrBusy, "snapshot %s, to make a volume from, is not Ready", name)
	}
	from, err := t.volumeSource(ctx, s.Spec.VolumeName)
	if err != nil {
		return nil, err
	}
	from.snapshotID = s.Status.ID
	if s.Status.GroupID != "" {
		from.group = s.Status.GroupID
	}
	if size := array.Size(s.Status.Size.Value()); size > 0 {
		from.size = size
	}
	return from, nil
}

// groupOn returns the consistency group that the source is in by now: what a resource says of it may be old.
func (from *source) groupOn(ctx context.Context, on array.Array) (string, error) {
	if from.snapshotID != "" {
		s, err := on.Snapshot(ctx, from.snapshotID)
		return cmp.Or(s.Group, from.group), err
	}
	v, err := on.Volume(ctx, from.volumeID)
	return cmp.Or(v.Group, from.group), err
}

// fits refuses a source that a volume cannot be made from as it is asked for.
func (from *source) fits(n pools.NewVolume, class string, protocol v1alpha1.Protocol) error {
	switch {
	case from == nil:
		return nil
	case class != from.class:
		return volume.Invalid("volume_content_source", "is of the PoolClass "+from.class+", the volume of "+class+
			"; a copy stays in the pool of its source")
	case (protocol == v1alpha1.Local) != (from.protocol == v1alpha1.Local):
		return volume.Invalid("volume_content_source", "is in the pool "+from.pool+", of another kind; a copy stays in the pool of its source")
	case protocol == v1alpha1.Local && n.Block != from.block:
		return volume.Invalid("volume_content_source", "is used in another volume mode; a copy keeps that of its source")
	case !n.Block && n.FSType != "" && from.fsType != "" && n.FSType != from.fsType:
		return volume.Invalid("volume_content_source", "has the file system "+from.fsType+", the volume "+n.FSType+
			"; a copy keeps that of its source: name a StorageClass with csi.storage.k8s.io/fstype: "+from.fsType)
	case protocol == v1alpha1.Local:
		return nil
	case (protocol == v1alpha1.ISCSI) != from.block && n.Block:
		return volume.Invalid("volume_content_source", "is reached over "+string(from.protocol)+", which cannot be a block volume")
	case (protocol == v1alpha1.ISCSI) != from.block:
		return volume.Invalid("volume_content_source", "is reached over "+string(from.protocol)+", the volume over "+string(protocol)+
			"; a copy keeps the protocol of its source")
	}
	return nil
}
