package pools

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Seen tells the supervisor what a resource is: from the watch, or from the task that has changed it.
type Seen struct {
	Object client.Object
	// ByTask: the watch will tell too, later.
	ByTask bool
}

// Gone tells that a resource does not exist any more.
type Gone struct {
	Kind, Name string
	// ByTask: the task that deleted it says so, and the watch will.
	ByTask bool
}

// Listed tells that the watches have reported every resource once.
type Listed struct{}

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
