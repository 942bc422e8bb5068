package rules

import (
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// What has an actor. The kit finds the actor of a request by an ID, which is the kind and the
// resource's name here, such as volume/pvc-1.
const (
	// KindVolume is a PoolVolume, KindSnapshot a PoolSnapshot, KindAttachment a PoolAttachment, KindPool a Pool.
	KindVolume     = "volume"
	KindSnapshot   = "snapshot"
	KindAttachment = "attachment"
	KindPool       = "pool"
	// KindNode is a PoolNode that may have to be deleted.
	KindNode = "node"
	// KindDisk is a disk of a node whose Pool may have to be made; its name is the pool's UUID.
	KindDisk = "disk"
	// KindLabels are the topology labels of a node.
	KindLabels = "labels"
)

// KeyOf is the ID by which the kit finds the actor of something of a kind.
func KeyOf(kind, name string) volume.ID { return volume.ID(kind + "/" + name) }

// SplitKey returns the kind and the name of a key.
func SplitKey(id volume.ID) (kind, name string) {
	kind, name, _ = strings.Cut(string(id), "/")
	return kind, name
}
