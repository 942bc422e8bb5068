package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pool is a place that volumes are made in: a pool of a Zadara VPSA, or a directory on a disk of a node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=vpsa,categories=katbox
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.className`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.vpsa.endpoint`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.local.node`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="CapacityMode",type=string,JSONPath=`.status.capacity.mode`
// +kubebuilder:printcolumn:name="Total",type=string,JSONPath=`.status.capacity.total`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.capacity.available`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolSpec   `json:"spec"`
	Status            PoolStatus `json:"status,omitempty"`
}

// PoolSpec is where a pool is, and what it may take.
// +kubebuilder:validation:XValidation:rule="has(self.vpsa) != has(self.local)",message="a pool is one of vpsa and local"
// +kubebuilder:validation:XValidation:rule="has(self.local) == has(oldSelf.local)",message="a pool on an array cannot become one of a node, nor the other way round"
type PoolSpec struct {
	// ClassName is the PoolClass that the pool is a member of. It can change only while the pool has
	// no volumes.
	// +kubebuilder:validation:MinLength=1
	ClassName string `json:"className"`
	// DisplayName is for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is for people.
	// +optional
	Description string `json:"description,omitempty"`
	// Unschedulable: it takes no new volumes.
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Overcommit is how many times its size may be promised to volumes, such as "2.5"; "0" sets no
	// limit: volumes are thin. The controller makes pools of nodes with "1": what is promised is there.
	// +optional
	// +kubebuilder:default="0"
	// +kubebuilder:validation:Pattern=`^[0-9]{1,4}(\.[0-9]{1,3})?$`
	Overcommit string `json:"overcommit,omitempty"`
	// CapacityThresholds are the free shares of the size below which the pool's mode changes, where the
	// array does not tell its mode itself. A pool takes new volumes only in the mode normal.
	// +optional
	CapacityThresholds CapacityThresholds `json:"capacityThresholds,omitzero"`
	// VPSA is the array. It cannot become another one.
	// +optional
	VPSA VPSA `json:"vpsa,omitzero"`
	// Local is a directory on a disk of a node. The controller makes such Pools, when a node tells of the
	// directory for the first time.
	// +optional
	Local *LocalPool `json:"local,omitempty"`
}

// CapacityThresholds are free shares of the size, such as "0.2".
// +kubebuilder:validation:XValidation:rule="double(self.emergency) <= double(self.protected) && double(self.protected) <= double(self.alert)",message="emergency has to be at most protected, and protected at most alert"
type CapacityThresholds struct {
	// +optional
	// +kubebuilder:default="0.2"
	// +kubebuilder:validation:Pattern=`^0(\.[0-9]{1,3})?$`
	Alert string `json:"alert,omitempty"`
	// +optional
	// +kubebuilder:default="0.1"
	// +kubebuilder:validation:Pattern=`^0(\.[0-9]{1,3})?$`
	Protected string `json:"protected,omitempty"`
	// +optional
	// +kubebuilder:default="0.05"
	// +kubebuilder:validation:Pattern=`^0(\.[0-9]{1,3})?$`
	Emergency string `json:"emergency,omitempty"`
}

// VPSA is how a Zadara VPSA is reached.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.pool) || has(self.pool) && self.pool == oldSelf.pool",message="the array's pool cannot change once it is set: its volumes would be lost from sight"
// +kubebuilder:validation:XValidation:rule="!(has(self.insecureSkipVerify) && self.insecureSkipVerify && has(self.caBundleSecretRef))",message="a CA bundle says nothing where the certificate is not checked: give one of caBundleSecretRef and insecureSkipVerify"
type VPSA struct {
	// Endpoint is its URL, such as https://vsa-0000036.example.com.
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@ ]+/?$`
	// +kubebuilder:validation:MaxLength=512
	Endpoint string `json:"endpoint"`
	// CredentialsSecretRef names the Secret, in the controller's namespace, whose key "token" is the
	// access key.
	CredentialsSecretRef SecretRef `json:"credentialsSecretRef"`
	// CABundleSecretRef names the Secret, in the controller's namespace, whose key "ca.crt" has the
	// certificates that the array's is trusted by; without it, those of the system.
	// +optional
	CABundleSecretRef *SecretRef `json:"caBundleSecretRef,omitempty"`
	// InsecureSkipVerify: the array's certificate is not checked.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// Pool is the pool on the array, such as pool-00000001. It is needed only where there are several.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Pool string `json:"pool,omitempty"`
	// ManageExternal: volumes that Katbox did not make get a PoolVolume too, so that PersistentVolumes
	// can name them. Deleting such a PoolVolume leaves the array's volume alone.
	// +optional
	ManageExternal bool `json:"manageExternal,omitempty"`
	// RequestTimeout is how long the array may take for an answer.
	// +optional
	// +kubebuilder:default="3m"
	RequestTimeout *Duration `json:"requestTimeout,omitempty"`
}

// LocalPool is a directory on a disk of a node, identified by the UUID that a file in it has: the disk may move to
// another node, and the node may get another name.
type LocalPool struct {
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the UUID cannot change: it tells one disk from another"
	UUID string `json:"uuid"`
	// Headroom is the share of the disk that is promised to no volume, such as "0.1".
	// +optional
	// +kubebuilder:default="0.1"
	// +kubebuilder:validation:Pattern=`^0(\.[0-9]{1,3})?$`
	Headroom string `json:"headroom,omitempty"`
}

// SecretRef names a Secret in the controller's namespace.
type SecretRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PoolStatus is how a pool is.
type PoolStatus struct {
	// State is computed from the conditions.
	// +optional
	State PoolState `json:"state,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	Capacity Capacity `json:"capacity,omitzero"`
	// +optional
	Counters PoolCounters `json:"counters,omitzero"`
	// Version of the array's software.
	// +optional
	Version string `json:"version,omitempty"`
	// LastProbeTime is when the array was last asked how it is; it is written only when something else
	// in the status changes too, or every few minutes.
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`
	// LastSyncTime is when its volumes and snapshots were last compared with the resources.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
	// +optional
	VPSA VPSAStatus `json:"vpsa,omitzero"`
	// +optional
	Local LocalStatus `json:"local,omitzero"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// VPSAStatus is what a VPSA says of itself.
type VPSAStatus struct {
	// PoolID is the pool on the array that is used.
	// +optional
	PoolID string `json:"poolID,omitempty"`
	// IQN is the array's iSCSI target. It tells one array from another.
	// +optional
	IQN string `json:"iqn,omitempty"`
	// Portal is the address and port of the target at present.
	// +optional
	Portal string `json:"portal,omitempty"`
	// CHAPSecretName is the Secret with the user and the secret of iSCSI logins.
	// +optional
	CHAPSecretName string `json:"chapSecretName,omitempty"`
}

// LocalStatus is what a node says of a pool on its disk.
type LocalStatus struct {
	// UUID is that of the directory.
	// +optional
	UUID string `json:"uuid,omitempty"`
	// Node has the disk at present, or had it last.
	// +optional
	Node string `json:"node,omitempty"`
	// KeyHash is the hash of the key that the disk has in its pool.json. Another node gets the pool only with the key.
	// +optional
	KeyHash string `json:"keyHash,omitempty"`
	// Path is the directory on the node.
	// +optional
	Path string `json:"path,omitempty"`
	// Backend keeps the volumes: projectQuota, image, btrfs or directory.
	// +optional
	Backend string `json:"backend,omitempty"`
	// FSType is the disk's file system.
	// +optional
	FSType string `json:"fsType,omitempty"`
	// HardLimit: no pod can write more into a volume than its size. Project quotas and btrfs set no such limit.
	// +optional
	HardLimit bool `json:"hardLimit,omitempty"`
}

// PoolState is the state of a pool.
// +kubebuilder:validation:Enum=Configuring;Importing;Ready;Incompatible;Unreachable;Failed;Deleting
type PoolState string

// The states of a pool.
const (
	PoolConfiguring  PoolState = "Configuring"
	PoolImporting    PoolState = "Importing"
	PoolReady        PoolState = "Ready"
	PoolIncompatible PoolState = "Incompatible"
	PoolUnreachable  PoolState = "Unreachable"
	PoolFailed       PoolState = "Failed"
	PoolDeleting     PoolState = "Deleting"
)

// The conditions of a pool.
const (
	// ConditionReachable: the array answers.
	ConditionReachable = "Reachable"
	// ConditionCompatible: it fits what Katbox needs and what the class wants.
	ConditionCompatible = "Compatible"
	// ConditionConfigured: its settings are as Katbox needs them.
	ConditionConfigured = "Configured"
	// ConditionImported: its volumes and snapshots have been compared with the resources.
	ConditionImported = "Imported"
	// ConditionHealthy: the array reports nothing that has failed.
	ConditionHealthy = "Healthy"
	// ConditionCapacityHealthy: its mode is normal.
	ConditionCapacityHealthy = "CapacityHealthy"
	// ConditionSuitable: it has what the parameters of its class need. One that has not takes other volumes all the same.
	ConditionSuitable = "Suitable"
	// ConditionReady sums the others up, for tools.
	ConditionReady = "Ready"
)

// PoolCounters counts what a pool has.
type PoolCounters struct {
	// Volumes that Katbox has made.
	// +optional
	Volumes int32 `json:"volumes"`
	// External volumes, which it has not.
	// +optional
	External int32 `json:"external"`
	// +optional
	Snapshots int32 `json:"snapshots"`
	// +optional
	Attachments int32 `json:"attachments"`
	// Retained volumes, whose claims are gone.
	// +optional
	Retained int32 `json:"retained,omitempty"`
}

// PoolList is a list of Pools.
//
// +kubebuilder:object:root=true
type PoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pool `json:"items"`
}
