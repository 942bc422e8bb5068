package pool

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// wants reports whether a volume without a PoolVolume gets one: a volume of this cluster, or any if the
// Pool says so.
func (x *comparison) wants(v *array.Volume) bool {
	if pools.ParseComment(v.Comment).Cluster == x.Cluster {
		named, ok := x.byName[v.Name]
		return !ok || named.ID != "" // else it is being made
	}
	return x.pool.Spec.VPSA.ManageExternal
}

// adopt makes the PoolVolume of a volume that has none.
func (x *comparison) adopt(ctx context.Context, listed *array.Volume) error {
	comment := pools.ParseComment(listed.Comment)
	name, management := pools.VolumeName(listed.Name), v1alpha1.Managed
	if comment.Cluster != x.Cluster {
		name, management = pools.ExternalName(x.pool.Name, listed.Name), v1alpha1.External
	}
	var have v1alpha1.PoolVolume
	err := x.Resources.Get(ctx, client.ObjectKey{Name: name}, &have)
	if err == nil && (have.Spec.Management != v1alpha1.External || have.Status.ID != "" || have.DeletionTimestamp != nil ||
		have.Spec.PoolName != x.pool.Name) {
		if have.Spec.PoolName != x.pool.Name || have.Status.ID != "" && have.Status.ID != listed.ID {
			x.nameTaken("volume", listed.ID, listed.Name, "PoolVolume "+name+" is volume "+have.Status.ID+" of pool "+have.Spec.PoolName)
		}
		return nil // made meanwhile, or another volume has its name
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read PoolVolume %s: %w", name, err)
	}
	missing := err != nil
	v, err := x.array.Volume(ctx, listed.ID)
	if errors.Is(err, array.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("look at volume %s: %w", listed.ID, err)
	}
	object := &have
	if missing {
		object = x.volumeResource(name, management, comment, v)
		if err := x.Resources.Create(ctx, object); err != nil {
			return x.notMade(fmt.Errorf("make PoolVolume %s of volume %s: %w", name, v.ID, err))
		}
	}
	kept, err := x.stillKept(ctx, object, comment)
	if err != nil {
		return err
	}
	base := object.DeepCopy()
	object.Status = volumeStatus(object.Status, &v)
	if kept != nil {
		retainedAgain(object, *kept)
	}
	if err := x.patchStatus(ctx, object, base); err != nil {
		return fmt.Errorf("write the status of PoolVolume %s: %w", name, err)
	}
	if v.Group != "" {
		x.ofGroup[v.Group] = name
	}
	known := poolmessages.Content{Name: name, ID: v.ID, Size: v.Size.Bytes(), Flags: poolmessages.FlagReady |
		poolmessages.FlagIf(management == v1alpha1.External, poolmessages.FlagExternal)}
	x.byID[v.ID], x.byName[name] = known, known
	if management == v1alpha1.Managed {
		x.volumes++
	} else {
		x.external++
	}
	return nil
}

// volumeResource is the PoolVolume of a volume on the array.
func (x *comparison) volumeResource(
	name string, management v1alpha1.Management, comment pools.Comment, v array.Volume,
) *v1alpha1.PoolVolume {
	object := &v1alpha1.PoolVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}, Labels: map[string]string{}},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: x.pool.Spec.ClassName, PoolName: x.pool.Name, Size: rules.Quantity(v.Size.Bytes()),
			VolumeMode: v1alpha1.Filesystem, Protocol: v1alpha1.NFS, Management: management,
		},
	}
	if name != v.Name && management == v1alpha1.Managed {
		object.Spec.RequestName = v.Name
	}
	switch {
	case x.pool.Spec.Local != nil:
		object.Spec.Protocol, object.Spec.FSType = v1alpha1.Local, fileSystemIn(comment)
		if v.Block {
			object.Spec.VolumeMode = v1alpha1.Block
		}
	case v.Block:
		object.Spec.Protocol = v1alpha1.ISCSI
		if comment.FSType == "" {
			object.Spec.VolumeMode = v1alpha1.Block
		}
		object.Spec.FSType = fileSystemIn(comment)
	}
	rules.SetLabel(object, v1alpha1.LabelPool, x.pool.Name)
	if claim := comment.For(); claim != (pools.Claim{}) && management == v1alpha1.Managed {
		object.Spec.ClaimRef = &v1alpha1.ClaimRef{
			Namespace: claim.Namespace, Name: claim.Name, UID: types.UID(comment.ClaimUID), NamespaceUID: types.UID(comment.NamespaceUID),
		}
		rules.SetLabel(object, v1alpha1.LabelNamespace, claim.Namespace)
	}
	return object
}

// fileSystemIn returns the file system that a comment names, if nodes make it: they run mkfs of this name, and others
// can change comments.
func fileSystemIn(comment pools.Comment) string {
	switch comment.FSType {
	case "ext4", "xfs":
		return comment.FSType
	}
	return ""
}

// notMade lets the import go on without one resource that exists by now, or that the API server takes in
// no case.
func (x *comparison) notMade(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err):
		x.Log.Error(err, "what is in a pool cannot be imported", "pool", x.pool.Name)
		return nil
	}
	return err
}

// volumeStatus is the status of a PoolVolume whose volume is there.
func volumeStatus(s v1alpha1.PoolVolumeStatus, v *array.Volume) v1alpha1.PoolVolumeStatus {
	s.State, s.Message = v1alpha1.VolumeReady, ""
	s.ID, s.Capacity = v.ID, rules.Quantity(v.Size.Bytes())
	repeat(&s, v)
	return s
}

// missingVolume marks a PoolVolume as Failed whose volume is gone.
func (x *comparison) missingVolume(ctx context.Context, known poolmessages.Content) error {
	kept := known.Flags.Has(poolmessages.FlagRetained)
	if known.ID == "" || x.seen[known.ID] || !known.Flags.Has(poolmessages.FlagReady) && !kept || known.Flags.Has(poolmessages.FlagDeleting) {
		return nil
	}
	if _, err := x.array.Volume(ctx, known.ID); !errors.Is(err, array.ErrNotFound) {
		return err // it is there, or that is not known
	}
	if kept {
		return x.vanished(ctx, known)
	}
	var object v1alpha1.PoolVolume
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: known.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ID != known.ID || object.Status.State != v1alpha1.VolumeReady {
		return nil
	}
	base := object.DeepCopy()
	object.Status.State, object.Status.Message = v1alpha1.VolumeFailed, rules.MissingMessage(rules.KindOfPool(x.pool))
	x.missing++
	return x.patchStatus(ctx, &object, base)
}

// patchStatus writes the status of a resource, unless a task has changed the resource meanwhile: that
// knows better.
func (x *comparison) patchStatus(ctx context.Context, object, base client.Object) error {
	err := x.Resources.Status().Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		x.Note(object)
	}
	return err
}
