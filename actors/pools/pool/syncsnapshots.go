package pool

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// snapshotsOf compares the snapshots of known volumes.
func (x *comparison) snapshotsOf(ctx context.Context, there []poolmessages.Content) error {
	byID, byName := make(map[string]poolmessages.Content, len(there)), make(map[string]poolmessages.Content, len(there))
	for _, s := range there {
		byName[s.Name] = s
		if s.ID != "" {
			byID[s.ID] = s
		}
	}
	seen := map[string]bool{}
	var strangers []array.Snapshot
	err := x.array.Snapshots(ctx, func(page []array.Snapshot) error {
		for _, s := range page {
			if known, ok := byID[s.ID]; ok {
				seen[s.ID] = true
				if err := x.refreshSnapshot(ctx, known, &s); err != nil {
					return err
				}
			} else if x.volumeOf(s) != "" {
				strangers = append(strangers, s)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	for _, s := range strangers {
		if err := x.adoptSnapshot(ctx, s, byName); err != nil {
			return err
		}
	}
	for _, s := range there {
		if !seen[s.ID] {
			if err := x.missingSnapshot(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// volumeOf is the PoolVolume that a snapshot was taken of; empty for that of a volume without one.
func (x *comparison) volumeOf(s array.Snapshot) string {
	if v, ok := x.byID[s.VolumeID]; ok {
		return v.Name
	}
	return x.ofGroup[s.Group]
}

// adoptSnapshot makes the PoolSnapshot of a snapshot that has none. One of a volume of ours, with a name
// that CSI gives, is ours again.
func (x *comparison) adoptSnapshot(ctx context.Context, listed array.Snapshot, byName map[string]poolmessages.Content) error {
	of := x.volumeOf(listed)
	name, management := listed.Name, v1alpha1.Managed
	if x.byName[of].Flags.Has(poolmessages.FlagExternal) || !pools.IsSnapshotName(listed.Name) {
		name, management = pools.ExternalName(x.pool.Name, of+"-"+listed.Name), v1alpha1.External
		if !x.pool.Spec.VPSA.ManageExternal {
			return nil
		}
	}
	if known, ok := byName[name]; ok && known.ID == "" && !known.Flags.Has(poolmessages.FlagExternal) {
		return nil // it is being taken
	}
	var have v1alpha1.PoolSnapshot
	err := x.Resources.Get(ctx, client.ObjectKey{Name: name}, &have)
	if err == nil && (have.Spec.Management != v1alpha1.External || have.Status.ID != "" || have.DeletionTimestamp != nil ||
		have.Spec.PoolName != x.pool.Name || have.Spec.VolumeName != of) {
		if have.Spec.PoolName != x.pool.Name || have.Status.ID != "" && have.Status.ID != listed.ID {
			x.nameTaken("snapshot", listed.ID, listed.Name, "PoolSnapshot "+name+" is snapshot "+have.Status.ID+" of pool "+have.Spec.PoolName)
		}
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read PoolSnapshot %s: %w", name, err)
	}
	missing := err != nil
	s, err := x.array.Snapshot(ctx, listed.ID)
	if errors.Is(err, array.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at snapshot %s: %w", listed.ID, err)
	}
	object := &have
	if missing {
		object = x.snapshotResource(name, of, management)
		if err := x.Resources.Create(ctx, object); err != nil {
			return x.notMade(fmt.Errorf("make PoolSnapshot %s of snapshot %s: %w", name, s.ID, err))
		}
	}
	base := object.DeepCopy()
	object.Status = v1alpha1.PoolSnapshotStatus{
		State: v1alpha1.SnapshotReady, ID: s.ID, GroupID: s.Group, Size: rules.Quantity(max(s.Size.Bytes(), x.byName[of].Size)),
		CreationTime: &metav1.Time{Time: s.Created},
	}
	if err := x.patchStatus(ctx, object, base); err != nil {
		return fmt.Errorf("write the status of PoolSnapshot %s: %w", name, err)
	}
	if management == v1alpha1.Managed {
		x.snapshots++
	} else {
		x.external++
	}
	return nil
}

// snapshotResource is the PoolSnapshot of a snapshot on the array.
func (x *comparison) snapshotResource(name, of string, management v1alpha1.Management) *v1alpha1.PoolSnapshot {
	object := &v1alpha1.PoolSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}, Labels: map[string]string{}},
		Spec:       v1alpha1.PoolSnapshotSpec{VolumeName: of, PoolName: x.pool.Name, Management: management},
	}
	rules.SetLabel(object, v1alpha1.LabelPool, x.pool.Name)
	return object
}

// missingSnapshot marks a PoolSnapshot as Failed whose snapshot is gone.
func (x *comparison) missingSnapshot(ctx context.Context, known poolmessages.Content) error {
	if known.ID == "" || !known.Flags.Has(poolmessages.FlagReady) || known.Flags.Has(poolmessages.FlagDeleting) {
		return nil
	}
	if _, err := x.array.Snapshot(ctx, known.ID); !errors.Is(err, array.ErrNotFound) {
		return err
	}
	var object v1alpha1.PoolSnapshot
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: known.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ID != known.ID || object.Status.State != v1alpha1.SnapshotReady {
		return nil
	}
	base := object.DeepCopy()
	object.Status.State, object.Status.Message = v1alpha1.SnapshotFailed, rules.MissingMessage(rules.KindOfPool(x.pool))
	x.missing++
	return x.patchStatus(ctx, &object, base)
}
