package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolAttachment is a PoolVolume that is attached to a node, or is being. Its name is made from both
// names.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=vas,categories=katbox
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="ISCSI",type=string,JSONPath=`.status.iscsiStatus`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolAttachment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolAttachmentSpec   `json:"spec"`
	Status            PoolAttachmentStatus `json:"status,omitempty"`
}

// PoolAttachmentSpec is which volume is attached where.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an attachment cannot become another one: delete it and make a new one"
type PoolAttachmentSpec struct {
	// +kubebuilder:validation:MinLength=1
	VolumeName string `json:"volumeName"`
	// +kubebuilder:validation:MinLength=1
	NodeName string `json:"nodeName"`
	// PoolName is the volume's pool.
	// +kubebuilder:validation:MinLength=1
	PoolName string   `json:"poolName"`
	Protocol Protocol `json:"protocol"`
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// Shared: the volume may be attached to other nodes at the same time.
	// +optional
	Shared bool `json:"shared,omitempty"`
}

// PoolAttachmentStatus is how an attachment is.
type PoolAttachmentStatus struct {
	// +optional
	State AttachmentState `json:"state,omitempty"`
	// ServerID is the node's server record on the array; all attachments of a node share it.
	// +optional
	ServerID string `json:"serverID,omitempty"`
	// Address is the node's address that the array lets in to a volume over NFS. When the node gets
	// another one, the volume is attached for that.
	// +optional
	Address string `json:"address,omitempty"`
	// Export is where the node mounts a volume over NFS from.
	// +optional
	Export string `json:"export,omitempty"`
	// Target, Portal and LUN are where the node's initiator finds a block volume.
	// +optional
	Target string `json:"target,omitempty"`
	// +optional
	Portal string `json:"portal,omitempty"`
	// +optional
	LUN *int32 `json:"lun,omitempty"`
	// ISCSIStatus is the node's session: Active or Disconnected.
	// +optional
	// +kubebuilder:validation:Enum=Active;Disconnected
	ISCSIStatus string `json:"iscsiStatus,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// WWID is what the disk says it is that the node has found there, and DiskBytes its size. The node says so where
	// the disk does not say by the array's ID which volume it is.
	// +optional
	// +kubebuilder:validation:MaxLength=520
	WWID string `json:"wwid,omitempty"`
	// +optional
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// AcceptedWWID is the one that the controller has found to be the volume's; RefusedWWID one that is not, and the
	// message says why. The node uses no disk before it is accepted.
	// +optional
	AcceptedWWID string `json:"acceptedWWID,omitempty"`
	// +optional
	RefusedWWID string `json:"refusedWWID,omitempty"`
}

// AttachmentState is the state of an attachment.
// +kubebuilder:validation:Enum=Creating;Attaching;ISCSILoginPending;Ready;Detaching;Deleting;Failed
type AttachmentState string

// The states of an attachment.
const (
	AttachmentCreating     AttachmentState = "Creating"
	AttachmentAttaching    AttachmentState = "Attaching"
	AttachmentLoginPending AttachmentState = "ISCSILoginPending"
	AttachmentReady        AttachmentState = "Ready"
	AttachmentDetaching    AttachmentState = "Detaching"
	AttachmentDeleting     AttachmentState = "Deleting"
	AttachmentFailed       AttachmentState = "Failed"
)

// PoolAttachmentList is a list of PoolAttachments.
//
// +kubebuilder:object:root=true
type PoolAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolAttachment `json:"items"`
}
