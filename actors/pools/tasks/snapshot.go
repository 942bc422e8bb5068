package tasks

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// takeSnapshot takes a snapshot of a volume, or goes on where an earlier call has stopped.
func (t *task) takeSnapshot(ctx context.Context, requested, of string) (pools.Snapshot, error) {
	s := &v1alpha1.PoolSnapshot{}
	found, err := t.read(ctx, t.name, s)
	if err == nil {
		if found {
			err = sameSnapshot(s, of)
		} else {
			err = t.newSnapshot(ctx, s, requested, of)
		}
	}
	if err == nil {
		err = t.take(ctx, s)
	}
	if err != nil {
		return pools.Snapshot{}, err
	}
	return describeSnapshot(s), nil
}

// sameSnapshot refuses a call for a snapshot that there is of another volume.
func sameSnapshot(s *v1alpha1.PoolSnapshot, of string) error {
	switch {
	case s.DeletionTimestamp != nil:
		return rules.Errorf(volume.ErrBusy, "snapshot %s is being deleted; try again", s.Name)
	case s.Spec.VolumeName != of:
		return rules.Errorf(volume.ErrConflict, "snapshot %s exists, of volume %s, asked for one of %s", s.Name, s.Spec.VolumeName, of)
	}
	return nil
}

// newSnapshot makes the resource of a snapshot.
func (t *task) newSnapshot(ctx context.Context, s *v1alpha1.PoolSnapshot, requested, of string) error {
	v, err := t.usableVolume(ctx, of)
	if err != nil {
		return err
	}
	if rules.KindOfVolume(v) == pools.KindLocal {
		pool, err := t.UsePool(ctx, v.Spec.PoolName)
		if err != nil {
			return err
		}
		if !pool.Disk.Copies {
			return volume.Invalid("source_volume_id", fmt.Sprintf("is in pool %s: %s", pool.Name, rules.NoCopies(pool.Disk)))
		}
	}
	*s = v1alpha1.PoolSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: t.name, Labels: map[string]string{}},
		Spec:       v1alpha1.PoolSnapshotSpec{VolumeName: of, PoolName: v.Spec.PoolName, Management: v1alpha1.Managed},
	}
	rules.SetLabel(s, v1alpha1.LabelPool, v.Spec.PoolName)
	if requested != t.name {
		s.Spec.RequestName = requested
	}
	return t.create(ctx, s)
}

// usableVolume reads a volume that is to be attached or copied.
func (t *task) usableVolume(ctx context.Context, name string) (*v1alpha1.PoolVolume, error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, name, v)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, rules.Errorf(volume.ErrNotFound, "there is no PoolVolume %s", name)
	case v.DeletionTimestamp != nil:
		return nil, rules.Errorf(volume.ErrBusy, "volume %s is being deleted", name)
	case v.Status.State == v1alpha1.VolumeFailed:
		return nil, rules.Errorf(volume.ErrUnavailable, "volume %s has failed: %s", name, v.Status.Message)
	case v.Status.State != v1alpha1.VolumeReady:
		return nil, rules.Errorf(volume.ErrBusy, "volume %s is not ready, its state is %q", name, v.Status.State)
	}
	return v, nil
}

// take has the array take the snapshot of a resource. After a final error the resource is gone; after
// any other one, and until the snapshot can be used, it is tried again.
func (t *task) take(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	if s.Status.State == v1alpha1.SnapshotReady || s.Status.State == v1alpha1.SnapshotFailed {
		return nil
	}
	err := t.takeOnArray(ctx, s)
	if err != nil && rules.IsFinal(err) {
		t.warn(s, "SnapshotFailed", err)
		if undone := t.remove(ctx, s); undone != nil {
			err = rules.Wrapf(volume.ErrUncertain, errors.Join(err, undone), "snapshot %s was not taken, and its resource is not deleted", t.name)
		}
	}
	switch {
	case err == nil && s.Status.State != v1alpha1.SnapshotReady:
		t.unfinished = rules.Errorf(volume.ErrBusy, "snapshot %s is being taken", t.name)
	case err != nil && !rules.IsFinal(err):
		err = stillOpen(err, "take snapshot "+t.name)
		t.unfinished = err
	}
	return err
}

func (t *task) takeOnArray(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	pool, err := t.UsePool(ctx, s.Spec.PoolName)
	if err != nil {
		return err
	}
	v, err := t.usableVolume(ctx, s.Spec.VolumeName)
	if err != nil {
		return err
	}
	if v.Spec.PoolName != s.Spec.PoolName {
		return rules.Errorf(volume.ErrConflict, "snapshot %s is of pool %s, and volume %s of pool %s",
			s.Name, s.Spec.PoolName, v.Name, v.Spec.PoolName)
	}
	have, err := pool.Array.CreateSnapshot(ctx, array.NewSnapshot{Name: s.Name, VolumeID: v.Status.ID})
	if err != nil {
		return t.placeError(pool.Name, err, "take snapshot "+s.Name)
	}
	state, was := v1alpha1.SnapshotReady, s.Status.State
	if !have.Usable {
		state = v1alpha1.SnapshotTaking
	}
	if state == was {
		return nil
	}
	return t.writeStatus(ctx, s, func() {
		size, created := have.Size.Bytes(), metav1.NewTime(have.Created)
		if size == 0 {
			size = v.Status.Capacity.Value()
		}
		s.Status = v1alpha1.PoolSnapshotStatus{
			State: state, ID: have.ID, GroupID: have.Group, Size: *resource.NewQuantity(size, resource.BinarySI), CreationTime: &created,
		}
	})
}

func describeSnapshot(s *v1alpha1.PoolSnapshot) pools.Snapshot {
	d := pools.Snapshot{
		ID: s.Name, Volume: s.Spec.VolumeName, Size: s.Status.Size.Value(), Ready: s.Status.State == v1alpha1.SnapshotReady,
	}
	if s.Status.CreationTime != nil {
		d.Created = s.Status.CreationTime.UTC()
	}
	return d
}

// finishSnapshot makes true what the resource of a snapshot says.
func (t *task) finishSnapshot(ctx context.Context) error {
	s := &v1alpha1.PoolSnapshot{}
	found, err := t.read(ctx, t.name, s)
	switch {
	case err != nil || !found:
		return err
	}
	t.Note(s)
	switch {
	case s.DeletionTimestamp != nil:
		err := t.mayDelete(ctx, rules.KindSnapshot)
		if err == nil && s.Spec.Management != v1alpha1.External {
			err = t.snapshotNeeded(ctx, s)
		}
		if err != nil {
			if errors.Is(err, pools.ErrInUse) {
				t.snapshotBlocked(ctx, s, err)
			}
			return err
		}
		return t.cleanSnapshot(ctx, s)
	case s.Spec.Management == v1alpha1.External:
		return nil
	}
	err = t.take(ctx, s)
	if err != nil && rules.IsFinal(err) {
		return nil // the resource is gone; the next call learns why
	}
	return err
}

// snapshotBlocked says on the resource, and in an event, why a snapshot is not deleted yet, once for each reason.
func (t *task) snapshotBlocked(ctx context.Context, s *v1alpha1.PoolSnapshot, why error) {
	if s.Status.State == v1alpha1.SnapshotDeleting && s.Status.Message == why.Error() {
		return
	}
	t.warn(s, "DeleteBlocked", why)
	if err := t.writeStatus(ctx, s, func() { s.Status.State, s.Status.Message = v1alpha1.SnapshotDeleting, why.Error() }); err != nil {
		t.Log.V(1).Info("the reason why a snapshot is not deleted cannot be written", "resource", t.name, "reason", err.Error())
	}
}

// removeSnapshot deletes a snapshot for a call.
func (t *task) removeSnapshot(ctx context.Context) error {
	s := &v1alpha1.PoolSnapshot{}
	found, err := t.read(ctx, t.name, s)
	if err != nil || !found {
		return err
	}
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	if gone, err := t.startDeletion(ctx, s); gone || err != nil {
		return err
	}
	return t.cleanSnapshot(ctx, s)
}

// cleanSnapshot deletes a snapshot on its array, and lets its resource go.
func (t *task) cleanSnapshot(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	if s.Spec.Management != v1alpha1.External {
		if err := t.deleteSnapshotOnArray(ctx, s); err != nil {
			t.unfinished = err
			return err
		}
	}
	return t.letGo(ctx, s)
}

func (t *task) deleteSnapshotOnArray(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	pool, err := t.UsePool(ctx, s.Spec.PoolName)
	if err != nil {
		return err
	}
	id := s.Status.ID
	if id == "" {
		if id, err = t.findSnapshot(ctx, s, pool); err != nil {
			return err
		}
		switch {
		case id == "" && t.Early():
			return rules.Errorf(volume.ErrUncertain, "snapshot %s is not on %s, and may still be taken by a request of an "+
				"earlier run of the controller", s.Name, t.Ground(pool.Name))
		case id == "":
			return nil
		}
	} else if is, err := t.isOurs(ctx, s, pool); err != nil || !is {
		return err
	}
	if err := pool.Array.DeleteSnapshot(ctx, id); err != nil {
		return t.arrayError(pool.Name, err, "delete snapshot "+s.Name)
	}
	return nil
}

// isOurs reports whether the array has the snapshot of a resource. One of its ID with another name and of
// another volume is none: the array was set up anew.
func (t *task) isOurs(ctx context.Context, s *v1alpha1.PoolSnapshot, pool poolmessages.UsablePool) (bool, error) {
	have, err := pool.Array.Snapshot(ctx, s.Status.ID)
	switch {
	case errors.Is(err, array.ErrNotFound):
		return false, nil
	case err != nil:
		return false, t.arrayError(pool.Name, err, "read snapshot "+s.Name)
	}
	return have.Name == s.Name || have.Group != "" && have.Group == s.Status.GroupID, nil
}

// findSnapshot finds a snapshot whose ID was never written down. The array is asked for all of them.
func (t *task) findSnapshot(ctx context.Context, s *v1alpha1.PoolSnapshot, pool poolmessages.UsablePool) (id string, err error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, s.Spec.VolumeName, v)
	if err != nil || !found || v.Status.ID == "" {
		return "", err // the snapshot keeps its volume
	}
	err = pool.Array.Snapshots(ctx, func(page []array.Snapshot) error {
		for _, have := range page {
			if have.Name == s.Name && (have.VolumeID == v.Status.ID || have.VolumeID == "" && have.Group == v.Status.GroupID) {
				id = have.ID
			}
		}
		return nil
	})
	if err != nil {
		return "", t.arrayError(pool.Name, err, "look for snapshot "+s.Name)
	}
	return id, nil
}
