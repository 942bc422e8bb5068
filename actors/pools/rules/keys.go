package rules

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
