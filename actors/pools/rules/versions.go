package rules

import (
	"hash/fnv"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// IsOlder reports whether a version says nothing new.
func IsOlder(version, known uint64) bool { return version != 0 && version < known }

// Hash stands in the index for a text of the array: there may be hundreds of thousands of resources.
func Hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum32()
}

// ResourceKind returns the kind of a resource; empty for any other object.
func ResourceKind(object client.Object) string {
	switch object.(type) {
	case *v1alpha1.PoolClass:
		return poolmessages.PoolClassKind
	case *v1alpha1.Pool:
		return poolmessages.PoolKind
	case *v1alpha1.PoolVolume:
		return poolmessages.PoolVolumeKind
	case *v1alpha1.PoolSnapshot:
		return poolmessages.PoolSnapshotKind
	case *v1alpha1.PoolAttachment:
		return poolmessages.PoolAttachmentKind
	case *v1alpha1.PoolNode:
		return poolmessages.PoolNodeKind
	}
	return ""
}

// ResourceVersion returns a resource's version as a number. etcd counts its changes with it; a version that
// is no number is 0, and nothing is older than that.
func ResourceVersion(object client.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return version
}
