// Package v1alpha1 has the custom resources of the pools: PoolClass, Pool, PoolVolume, PoolSnapshot,
// PoolAttachment and PoolNode. A resource is the durable record of what is wanted (spec) and of what
// is (status); the controller keeps no other.
//
// +kubebuilder:object:generate=true
// +groupName=pools.katbox.io
package v1alpha1
