package nodehold

const (
	// ScaleDownDisabled keeps the Cluster Autoscaler from removing a Node.
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// DoNotDisrupt keeps Karpenter from consolidating a Node, or replacing it because it has drifted. Karpenter documents
	// it for Pods, Nodes and NodeClaims, and reads it from the Node once that is registered.
	DoNotDisrupt = "karpenter.sh/do-not-disrupt"
	// Marker is where it is noted what was set, and when.
	Marker = "katbox.io/node-hold"
	// Set is the value of the first two.
	Set = "true"
)

// Holding are the annotations that hold a node.
func Holding() []string { return []string{ScaleDownDisabled, DoNotDisrupt} }
