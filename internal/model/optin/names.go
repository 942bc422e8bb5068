package optin

import "github.com/katbox/katbox/internal/model/api"

const (
	// Label on a namespace, or on a pod, is [Keep] or [Drop].
	Label = "katbox.io/scratch"
	// Keep on a namespace converts the volumes of its pods; on a pod, its own in any namespace.
	Keep = "keep"
	// Drop on a pod leaves it alone; on a namespace, all pods in it, whatever their label says.
	Drop = "drop"
	// VolumesAnnotation on a pod names the volumes to convert, separated by commas: those and no others.
	VolumesAnnotation = "katbox.io/scratch-volumes"
	// AttributePrefix and one of Attributes are an annotation on a pod or a namespace: the value of that attribute for each
	// volume that is converted. That of the pod counts.
	AttributePrefix = "katbox.io/"

	// Policy is the name of the policy and of its ConfigMap.
	Policy = "katbox-scratch"
	// Home is the namespace of that ConfigMap.
	Home = "katbox"
)

// Attributes are those that annotations may set, sorted.
var Attributes = []string{api.KeyArchive, "lifespan", "lifespanSucceeded", api.KeyRetain}

// System are the namespaces whose pods are always left alone: what they run is needed before Katbox can run.
var System = []string{"kube-node-lease", "kube-public", "kube-system", Home}
