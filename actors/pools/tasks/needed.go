package tasks

import (
	"context"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// needed returns [pools.ErrInUse] while a PersistentVolume names the volume of a resource that a person has
// deleted: the data of a claim go with the claim, and not with a resource. A deletion that CSI asks for is not
// held up, because Kubernetes has decided before. One that was interrupted is not either: its PersistentVolume
// is Released, and to be deleted.
func (t *task) needed(ctx context.Context, v *v1alpha1.PoolVolume) error {
	name, err := t.VolumeNamers.Of(ctx, t.Resources, v.Name, v.Spec.RequestName)
	if err != nil || name == "" {
		return err
	}
	return rules.Errorf(pools.ErrInUse, "the PersistentVolume %s names volume %s; delete its claim, or the PersistentVolume if the claim "+
		"is gone, and what is on the %s goes then", name, v.Name, rules.MediumOfVolume(v))
}

// snapshotNeeded is needed for a snapshot, which a VolumeSnapshotContent names.
func (t *task) snapshotNeeded(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	name, err := t.SnapshotNamers.Of(ctx, t.Resources, s.Name, contentName(s))
	if err != nil || name == "" {
		return err
	}
	return rules.Errorf(pools.ErrInUse, "the VolumeSnapshotContent %s names snapshot %s; delete its VolumeSnapshot, or the "+
		"VolumeSnapshotContent if that is gone, and what is on %s goes then", name, s.Name, t.Ground(s.Spec.PoolName))
}

// contentName is the name that external-snapshotter gives to what it has for a snapshot that it asks for; empty
// for another snapshot.
func contentName(s *v1alpha1.PoolSnapshot) string {
	const asked, has = "snapshot-", "snapcontent-"
	name := s.Name
	if s.Spec.RequestName != "" {
		name = s.Spec.RequestName
	}
	if len(name) <= len(asked) || name[:len(asked)] != asked {
		return ""
	}
	return has + name[len(asked):]
}
