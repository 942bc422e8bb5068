package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolSnapshot is a snapshot of a PoolVolume.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ksnap,categories=katbox
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.id`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolSnapshotSpec   `json:"spec"`
	Status            PoolSnapshotStatus `json:"status,omitempty"`
}

// PoolSnapshotSpec is what is wanted of a snapshot.
// +kubebuilder:validation:XValidation:rule="has(self.requestName) == has(oldSelf.requestName)",message="the name of the request cannot change"
type PoolSnapshotSpec struct {
	// RequestName is the name by which CSI asked for it, where that is not the resource's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name of the request cannot change"
	RequestName string `json:"requestName,omitempty"`
	// VolumeName is the PoolVolume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the volume cannot change"
	VolumeName string `json:"volumeName"`
	// PoolName is the volume's pool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the pool cannot change"
	PoolName string `json:"poolName"`
	// Management: Managed by Katbox, or External: Katbox did not take it, and deletes nothing but this resource.
	// +optional
	// +kubebuilder:default=Managed
	Management Management `json:"management,omitempty"`
}

// PoolSnapshotStatus is how a snapshot is.
type PoolSnapshotStatus struct {
	// +optional
	State SnapshotState `json:"state,omitempty"`
	// ID on the array, such as snap-00000001.
	// +optional
	ID string `json:"id,omitempty"`
	// GroupID is the volume's consistency group on the array.
	// +optional
	GroupID string `json:"groupID,omitempty"`
	// Size of the volume when it was taken.
	// +optional
	Size resource.Quantity `json:"size,omitzero"`
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}

// SnapshotState is the state of a snapshot.
// +kubebuilder:validation:Enum=Creating;TakingSnapshot;Ready;Deleting;Failed
type SnapshotState string

// The states of a snapshot.
const (
	SnapshotCreating SnapshotState = "Creating"
	SnapshotTaking   SnapshotState = "TakingSnapshot"
	SnapshotReady    SnapshotState = "Ready"
	SnapshotDeleting SnapshotState = "Deleting"
	SnapshotFailed   SnapshotState = "Failed"
)

// PoolSnapshotList is a list of PoolSnapshots.
//
// +kubebuilder:object:root=true
type PoolSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolSnapshot `json:"items"`
}
