package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolNode is a node that volumes can be attached to: what its server records on the arrays are made
// from. The node's daemon writes it; its name is the node's.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vscnode,categories=katbox
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.spec.addresses[0]`
// +kubebuilder:printcolumn:name="IQN",type=string,JSONPath=`.spec.iqn`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PoolNodeSpec `json:"spec"`
}

// PoolNodeSpec is how a node appears on the storage network.
type PoolNodeSpec struct {
	// Addresses on the storage network; the first one is used.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	Addresses []string `json:"addresses"`
	// IQN is the node's iSCSI initiator; empty where it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=223
	// +kubebuilder:validation:Pattern=`^(iqn\.[0-9]{4}-[0-9]{2}\.[a-z0-9.:-]+)?$`
	IQN string `json:"iqn,omitempty"`
}

// PoolNodeList is a list of PoolNodes.
//
// +kubebuilder:object:root=true
type PoolNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolNode `json:"items"`
}
