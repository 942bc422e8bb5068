package pools

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// protected reports whether our finalizer keeps a resource. Without it the resource waits for others.
func protected(object client.Object) bool {
	return slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer)
}

// unfinishedVolume reports whether something is left to do for a volume.
func unfinishedVolume(v *v1alpha1.PoolVolume) bool {
	if v.DeletionTimestamp != nil {
		return protected(v)
	}
	switch v.Status.State {
	case "":
		// The volume of a stranger is never made; the import completes its resource.
		return v.Spec.Management != v1alpha1.External
	case v1alpha1.VolumeFailed:
		return false
	case v1alpha1.VolumeReady:
		return v.Spec.Management != v1alpha1.External && v.Spec.Size.Cmp(v.Status.Capacity) > 0
	case v1alpha1.VolumeRetained:
		return unfinishedRetained(v)
	default:
		return true
	}
}

// unfinishedSnapshot reports whether something is left to do for a snapshot.
func unfinishedSnapshot(s *v1alpha1.PoolSnapshot) bool {
	if s.DeletionTimestamp != nil {
		return protected(s)
	}
	switch s.Status.State {
	case "":
		return s.Spec.Management != v1alpha1.External
	case v1alpha1.SnapshotReady, v1alpha1.SnapshotFailed:
		return false
	default:
		return true
	}
}

// unfinishedAttachment reports whether the controller has something left to do for an attachment.
func unfinishedAttachment(a *v1alpha1.PoolAttachment) bool {
	if a.DeletionTimestamp != nil {
		return protected(a)
	}
	switch a.Status.State {
	case v1alpha1.AttachmentReady, v1alpha1.AttachmentLoginPending:
		return findsDisk(a)
	case v1alpha1.AttachmentFailed:
		return false
	default:
		return true
	}
}
