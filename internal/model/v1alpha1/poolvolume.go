package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PoolVolume is a volume in a pool. Its name is the handle of its PersistentVolume, and the volume's
// display name on the array.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kvol,categories=katbox
// +kubebuilder:selectablefield:JSONPath=.status.state
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=`.spec.protocol`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.poolName`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.id`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.claimRef.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.claimRef.name`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.retainedUntil`
// +kubebuilder:printcolumn:name="Management",type=string,JSONPath=`.spec.management`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolVolumeSpec   `json:"spec"`
	Status            PoolVolumeStatus `json:"status,omitempty"`
}

// PoolVolumeSpec is what is wanted of a volume.
// +kubebuilder:validation:XValidation:rule="self.volumeMode != 'Block' || self.protocol != 'nfs'",message="a volume in the mode Block has the protocol iscsi or local"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source)",message="the source cannot change"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == has(oldSelf.fsType)",message="the file system cannot change"
type PoolVolumeSpec struct {
	// RequestName is the name by which CSI asked for the volume, where that is not the resource's. It
	// changes when a retained volume is given to another claim.
	// +optional
	RequestName string `json:"requestName,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the class cannot change"
	ClassName string `json:"className"`
	// PoolName is set once, by the allocator.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the pool cannot change"
	PoolName string `json:"poolName"`
	// Size only grows; what the array refuses is taken back.
	Size resource.Quantity `json:"size"`
	// VolumeMode: Filesystem, or Block for a raw block device.
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the volume mode cannot change"
	VolumeMode VolumeMode `json:"volumeMode"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the protocol cannot change"
	Protocol Protocol `json:"protocol"`
	// FSType is the file system on an iSCSI volume, or in an image file, in the mode Filesystem.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the file system cannot change"
	FSType string `json:"fsType,omitempty"`
	// +optional
	Flags VolumeFlags `json:"flags,omitzero"`
	// Source is what its data came from.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the source cannot change"
	Source *VolumeSource `json:"source,omitempty"`
	// ClaimRef is the claim that it was made for, or that got it back. An administrator may give a retained
	// volume to a claim in another namespace by changing it.
	// +optional
	ClaimRef *ClaimRef `json:"claimRef,omitempty"`
	// Management: Managed by Katbox, or External: Katbox attaches it, and deletes nothing but this resource.
	// +optional
	// +kubebuilder:default=Managed
	Management Management `json:"management,omitempty"`
	// Lifespan is how long it is kept after its claim was deleted. It follows the claim's annotation
	// pools.katbox.io/lifespan. Where the claim says nothing it is empty, and becomes that of the class when the
	// claim is deleted. An administrator may change it from then on.
	// +optional
	Lifespan *Duration `json:"lifespan,omitempty"`
}

// VolumeMode is what pods get.
type VolumeMode string

// The volume modes.
const (
	Filesystem VolumeMode = "Filesystem"
	Block      VolumeMode = "Block"
)

// Management reports whether Katbox made a volume.
// +kubebuilder:validation:Enum=Managed;External
type Management string

// The managements.
const (
	Managed  Management = "Managed"
	External Management = "External"
)

// VolumeSource is a PoolSnapshot or a PoolVolume, by name.
// +kubebuilder:validation:XValidation:rule="(has(self.snapshot) && size(self.snapshot) > 0) != (has(self.volume) && size(self.volume) > 0)",message="a source is a snapshot or a volume"
type VolumeSource struct {
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// +optional
	Volume string `json:"volume,omitempty"`
}

// ClaimRef is a PersistentVolumeClaim.
type ClaimRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID is the claim's.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// NamespaceUID is the namespace's: a later one of the same name may have another owner.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty"`
}

// PoolVolumeStatus is how a volume is.
type PoolVolumeStatus struct {
	// +optional
	State VolumeState `json:"state,omitempty"`
	// ID on the array, such as volume-00000001.
	// +optional
	ID string `json:"id,omitempty"`
	// GroupID is the consistency group on the array, such as cg-00000001.
	// +optional
	GroupID string `json:"groupID,omitempty"`
	// Capacity is the size that it has.
	// +optional
	Capacity resource.Quantity `json:"capacity,omitzero"`
	// WWID is what the volume's disk is known by, where it does not say by the array's ID which volume it is: the one that
	// the first node found and the array confirmed. No other disk is taken for the volume's.
	// +optional
	WWID string `json:"wwid,omitempty"`
	// ExportPath is where NFS clients mount it from.
	// +optional
	ExportPath string `json:"exportPath,omitempty"`
	// RetainedSince is when its claim was deleted, RetainedUntil when it goes if there is no pressure
	// before.
	// +optional
	RetainedSince *metav1.Time `json:"retainedSince,omitempty"`
	// +optional
	RetainedUntil *metav1.Time `json:"retainedUntil,omitempty"`
	// Message says why it is in its state, where that needs a reason.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// VolumeState is the state of a volume.
// +kubebuilder:validation:Enum=Creating;Provisioning;Cloning;Ready;Retained;Deleting;Failed
type VolumeState string

// The states of a volume.
const (
	VolumeCreating     VolumeState = "Creating"
	VolumeProvisioning VolumeState = "Provisioning"
	VolumeCloning      VolumeState = "Cloning"
	VolumeReady        VolumeState = "Ready"
	VolumeRetained     VolumeState = "Retained"
	VolumeDeleting     VolumeState = "Deleting"
	VolumeFailed       VolumeState = "Failed"
)

// PoolVolumeList is a list of PoolVolumes.
//
// +kubebuilder:object:root=true
type PoolVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolVolume `json:"items"`
}
