package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all resources here.
var GroupVersion = schema.GroupVersion{Group: "pools.katbox.io", Version: "v1alpha1"}

const (
	// Finalizer keeps a resource until what it stands for is gone from the array.
	Finalizer = "pools.katbox.io/delete-protection"
	// Forget is the annotation, with the value "true", that lets a pool go although its array cannot
	// be reached: its resources are deleted, and nothing on the array.
	Forget = "pools.katbox.io/forget"
	// DiskOn is the annotation of a Pool by which a person says which node has its disk, where the disk cannot prove
	// that: its pool.json has lost its key.
	DiskOn = "pools.katbox.io/disk-on"
	// LabelNamespace is the label with the namespace of the claim that a volume was made for.
	LabelNamespace = "pools.katbox.io/namespace"
	// LifespanAnnotation of a claim is how long the data of its volume is kept after its deletion, such as 24h;
	// 0s: it is deleted at once. Without it the PoolClass says so.
	LifespanAnnotation = "pools.katbox.io/lifespan"
	// RestoreAnnotation of a new claim asks for what a deleted claim of its namespace has left: that claim's
	// name or UID, or latest.
	RestoreAnnotation = "pools.katbox.io/restore"
	// RestoredFromAnnotation of a PoolVolume is what it was, in JSON, before it was given to its present claim.
	RestoredFromAnnotation = "pools.katbox.io/restored-from"
	// LabelPool is the label with the name of the pool that a resource belongs to.
	LabelPool = "pools.katbox.io/pool"
)

// AddToScheme makes the resources known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&PoolClass{}, &PoolClassList{}, &Pool{}, &PoolList{}, &PoolVolume{}, &PoolVolumeList{},
		&PoolSnapshot{}, &PoolSnapshotList{}, &PoolAttachment{}, &PoolAttachmentList{}, &PoolNode{}, &PoolNodeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
