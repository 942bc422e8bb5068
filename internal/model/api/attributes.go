package api

// The attributes of an inline volume in a pod's spec that programs outside of the node look at too. All
// that there are, and what their values may be, is in internal/node/policy.
const (
	// KeyAttach mounts a retained volume in place of a new one.
	KeyAttach = "attach"
	// KeyLogs says whether what the containers of the pod print is kept: true or false.
	KeyLogs = "logs"
	// KeyRetain says after which outcomes of its pod the volume is retained: Always, OnFailure or Never.
	KeyRetain = "retain"
)
