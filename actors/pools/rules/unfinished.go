package rules

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// IsDeleting reports whether a resource is to be deleted and waits for us.
func IsDeleting(m metav1.Object) bool {
	return m.GetDeletionTimestamp() != nil && slices.Contains(m.GetFinalizers(), v1alpha1.Finalizer)
}

// HasFinalizer reports whether our finalizer keeps a resource. Without it the resource waits for others.
func HasFinalizer(object client.Object) bool {
	return slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer)
}

// UnfinishedVolume reports whether something is left to do for a volume.
func UnfinishedVolume(v *v1alpha1.PoolVolume) bool {
	if v.DeletionTimestamp != nil {
		return HasFinalizer(v)
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
		return UnfinishedRetained(v)
	default:
		return true
	}
}

// UnfinishedSnapshot reports whether something is left to do for a snapshot.
func UnfinishedSnapshot(s *v1alpha1.PoolSnapshot) bool {
	if s.DeletionTimestamp != nil {
		return HasFinalizer(s)
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

// UnfinishedAttachment reports whether the controller has something left to do for an attachment.
func UnfinishedAttachment(a *v1alpha1.PoolAttachment) bool {
	if a.DeletionTimestamp != nil {
		return HasFinalizer(a)
	}
	switch a.Status.State {
	case v1alpha1.AttachmentReady, v1alpha1.AttachmentLoginPending:
		return FindsDisk(a)
	case v1alpha1.AttachmentFailed:
		return false
	default:
		return true
	}
}
