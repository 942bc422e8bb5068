package pools

import (
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// What has an actor. The kit finds the actor of a request by an ID, which is the kind and the
// resource's name here, such as volume/pvc-1.
const (
	kindVolume     = "volume"
	kindSnapshot   = "snapshot"
	kindAttachment = "attachment"
	kindPool       = "pool"
	// kindNode is a PoolNode that may have to be deleted.
	kindNode = "node"
	// kindDisk is a disk of a node whose Pool may have to be made; its name is the pool's UUID.
	kindDisk = "disk"
	// kindLabels are the topology labels of a node.
	kindLabels = "labels"
)

func keyOf(kind, name string) volume.ID { return volume.ID(kind + "/" + name) }

// split returns the kind and the name of a key.
func split(id volume.ID) (kind, name string) {
	kind, name, _ = strings.Cut(string(id), "/")
	return kind, name
}
