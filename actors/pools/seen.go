package pools

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// seen tells the supervisor what a resource is: from the watch, or from the task that has changed it.
type seen struct {
	object client.Object
	// byTask: the watch will tell too, later.
	byTask bool
}

// gone tells that a resource does not exist any more.
type gone struct {
	kind, name string
	// byTask: the task that deleted it says so, and the watch will.
	byTask bool
}

// listed tells that the watches have reported every resource once.
type listed struct{}

// The kinds of resources, as the watches name them.
const (
	PoolClassKind      = "PoolClass"
	PoolKind           = "Pool"
	PoolVolumeKind     = "PoolVolume"
	PoolSnapshotKind   = "PoolSnapshot"
	PoolAttachmentKind = "PoolAttachment"
	PoolNodeKind       = "PoolNode"
	NodeKind           = "Node"
	// PersistentVolumeClaimKind: of claims the metadata alone are watched.
	PersistentVolumeClaimKind = "PersistentVolumeClaim"
	PersistentVolumeKind      = "PersistentVolume"
)

// kindOf returns the kind of a resource; empty for any other object.
func kindOf(object client.Object) string {
	switch object.(type) {
	case *v1alpha1.PoolClass:
		return PoolClassKind
	case *v1alpha1.Pool:
		return PoolKind
	case *v1alpha1.PoolVolume:
		return PoolVolumeKind
	case *v1alpha1.PoolSnapshot:
		return PoolSnapshotKind
	case *v1alpha1.PoolAttachment:
		return PoolAttachmentKind
	case *v1alpha1.PoolNode:
		return PoolNodeKind
	}
	return ""
}

// versionOf returns a resource's version as a number. etcd counts its changes with it; a version that
// is no number is 0, and nothing is older than that.
func versionOf(object client.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return version
}
