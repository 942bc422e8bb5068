package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// A class may have pools on arrays and on nodes. Each CSI driver sees those of its own kind, and no others: so a
// class needs no kind, which one without pools would not have.

// KindOfPool tells a pool on an array from one on a disk of a node.
func KindOfPool(p *v1alpha1.Pool) pools.Kind {
	if p.Spec.Local != nil {
		return pools.KindLocal
	}
	return pools.KindArray
}

// KindOfVolume is the kind of the pool that a volume is in.
func KindOfVolume(v *v1alpha1.PoolVolume) pools.Kind { return pools.Protocol(v.Spec.Protocol).Kind() }

// OnDevice reports whether a volume is a block device on its array. On a node it may have a file system of its own all
// the same.
func OnDevice(v *v1alpha1.PoolVolume) bool {
	if v.Spec.Protocol == v1alpha1.Local {
		return v.Spec.VolumeMode == v1alpha1.Block
	}
	return v.Spec.Protocol == v1alpha1.ISCSI
}

// NoHardLimit says why a pool does not fit a class whose enforcement is Strict.
func NoHardLimit(class string, disk array.Disk) string {
	return fmt.Sprintf("PoolClass %s has the enforcement Strict, and the backend %s of %s on node %s sets no limit that holds against "+
		"every pod; use the backend image, or the enforcement BestEffort", class, disk.Backend, disk.Path, disk.Node)
}

// NoCopies says why nothing in a pool can be copied.
func NoCopies(disk array.Disk) string {
	return fmt.Sprintf("it makes no copies and no snapshots (backend %s on %s)", disk.Backend, disk.FSType)
}

// NodeGVK is the kind of Kubernetes' own nodes.
var NodeGVK = schema.GroupVersionKind{Version: "v1", Kind: poolmessages.NodeKind}

// MediumOfVolume is what a volume is on, for people: an array, or a disk of a node.
func MediumOfVolume(v *v1alpha1.PoolVolume) string { return Medium(KindOfVolume(v)) }

// Medium is what volumes of a kind are on, for people.
func Medium(kind pools.Kind) string {
	if kind == pools.KindLocal {
		return "disk"
	}
	return "array"
}

// MissingMessage is why a PoolVolume or PoolSnapshot is Failed whose object is gone from the array.
func MissingMessage(kind pools.Kind) string {
	return "it does not exist on the " + Medium(kind) + " any more"
}

// IsMissing tells that message from others, also from that of an earlier version, which called a disk an array.
func IsMissing(message string) bool {
	return message == MissingMessage(pools.KindArray) || message == MissingMessage(pools.KindLocal)
}
