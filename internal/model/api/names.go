package api

const (
	// DriverName is the name of the CSI driver for inline volumes, unless a flag sets another.
	DriverName = "katbox.csi.paypal.com"
	// Topology is the label of the nodes that a daemon has registered on: the segment that ties a volume to its node.
	Topology = "topology.katbox.csi/node"
)
