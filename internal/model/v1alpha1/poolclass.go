package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolClass is a set of pools that a StorageClass names. New volumes go to one of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pc;vscsc,categories=katbox
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.counters.pools`
// +kubebuilder:printcolumn:name="CapacityMode",type=string,JSONPath=`.status.capacity.mode`
// +kubebuilder:printcolumn:name="Total",type=string,JSONPath=`.status.capacity.total`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.capacity.available`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolClassSpec   `json:"spec,omitempty"`
	Status            PoolClassStatus `json:"status,omitempty"`
}

// PoolClassSpec is what a person wants of the volumes of a class.
type PoolClassSpec struct {
	// DisplayName is for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is for people.
	// +optional
	Description string `json:"description,omitempty"`
	// Default: StorageClasses that name no class mean this one. One class is the default at most.
	// +optional
	Default bool `json:"default,omitempty"`
	// Allocator says which pool takes a new volume, among those that are Ready and have room:
	// Weighted (the least used by volumes, allocation and promises together), MostAvailable (the most
	// free space), Even (the fewest volumes), Linear (one after the other, by name).
	// +optional
	// +kubebuilder:default=Weighted
	Allocator Allocator `json:"allocator,omitempty"`
	// VolumeFlags of new volumes.
	// +optional
	VolumeFlags VolumeFlags `json:"volumeFlags,omitzero"`
	// Protocol of volumes with a file system, where the StorageClass does not say.
	// +optional
	// +kubebuilder:default=nfs
	Protocol Protocol `json:"protocol,omitempty"`
	// Lifespan is how long the data of a volume is kept after its claim was deleted, such as 24h or 7d, where the
	// claim does not say. Without it, and with 0s, nothing is kept. Under pressure the oldest go earlier.
	// +optional
	Lifespan *Duration `json:"lifespan,omitempty"`
	// Enforcement of sizes in pools of nodes. BestEffort: by project quotas, too, which a hostile pod can
	// evade. Strict: only pools where no pod can write more than its volume's size.
	// +optional
	// +kubebuilder:default=BestEffort
	Enforcement Enforcement `json:"enforcement,omitempty"`
}

// Enforcement says how a volume's size has to hold.
// +kubebuilder:validation:Enum=BestEffort;Strict
type Enforcement string

// The enforcements.
const (
	BestEffort Enforcement = "BestEffort"
	Strict     Enforcement = "Strict"
)

// Allocator is a rule by which a pool is chosen.
// +kubebuilder:validation:Enum=Weighted;MostAvailable;Even;Linear
type Allocator string

// The allocators.
const (
	Weighted      Allocator = "Weighted"
	MostAvailable Allocator = "MostAvailable"
	Even          Allocator = "Even"
	Linear        Allocator = "Linear"
)

// Protocol is how nodes reach a volume; local: its disk is in the node.
// +kubebuilder:validation:Enum=nfs;iscsi;local
type Protocol string

// The protocols.
const (
	NFS   Protocol = "nfs"
	ISCSI Protocol = "iscsi"
	Local Protocol = "local"
)

// VolumeFlags are properties of a volume on its array.
type VolumeFlags struct {
	// +optional
	Compress bool `json:"compress,omitempty"`
	// +optional
	Dedupe bool `json:"dedupe,omitempty"`
	// +optional
	Encrypt bool `json:"encrypt,omitempty"`
	// Extra are further fields of the array's own request.
	// +optional
	Extra map[string]string `json:"extra,omitempty"`
}

// PoolClassStatus is how a class is.
type PoolClassStatus struct {
	// +optional
	State ClassState `json:"state,omitempty"`
	// Capacity of all pools; the mode is the worst of them.
	// +optional
	Capacity Capacity `json:"capacity,omitzero"`
	// +optional
	Counters ClassCounters `json:"counters,omitzero"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ClassState is the state of a class.
// +kubebuilder:validation:Enum=Creating;Ready;Failed;Deleting
type ClassState string

// The states of a class.
const (
	ClassCreating ClassState = "Creating"
	ClassReady    ClassState = "Ready"
	ClassFailed   ClassState = "Failed"
	ClassDeleting ClassState = "Deleting"
)

// Capacity is the room of a pool, or of the pools of a class.
type Capacity struct {
	// +optional
	Total resource.Quantity `json:"total,omitzero"`
	// Available is free on the disks.
	// +optional
	Available resource.Quantity `json:"available,omitzero"`
	// Provisioned is promised to volumes, which are thin.
	// +optional
	Provisioned resource.Quantity `json:"provisioned,omitzero"`
	// Retained is what volumes take whose claims are gone. They make room for new ones.
	// +optional
	Retained resource.Quantity `json:"retained,omitzero"`
	// Mode: normal, alert, protected or emergency.
	// +optional
	Mode CapacityMode `json:"mode,omitempty"`
}

// CapacityMode tells how full a pool is.
// +kubebuilder:validation:Enum=normal;alert;protected;emergency
type CapacityMode string

// ClassCounters counts what a class has.
type ClassCounters struct {
	// +optional
	Pools int32 `json:"pools"`
	// Ready pools.
	// +optional
	Ready int32 `json:"ready"`
	// +optional
	Volumes int32 `json:"volumes"`
	// Retained volumes, whose claims are gone.
	// +optional
	Retained int32 `json:"retained,omitempty"`
	// +optional
	Snapshots int32 `json:"snapshots"`
}

// PoolClassList is a list of PoolClasses.
//
// +kubebuilder:object:root=true
type PoolClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolClass `json:"items"`
}
