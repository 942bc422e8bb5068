package api

// The attributes of an inline volume in a pod's spec that programs outside of the node look at too. All
// that there are, and what their values may be, is in internal/node/policy.
const (
	// KeyArchive says after which outcomes of its pod a copy of the volume goes to the archive: Always, OnFailure or Never.
	KeyArchive = "archive"
	// KeyAttach mounts a retained volume in place of a new one.
	KeyAttach = "attach"
	// KeyConverted says that a policy made the volume of an emptyDir, and no person: what is beyond the bounds of the
	// namespace is cut to them, and not refused. Its one value is [Converted].
	KeyConverted = "converted"
	// KeyLogs says whether what the containers of the pod print is kept: true or false.
	KeyLogs = "logs"
	// KeyRetain says after which outcomes of its pod the volume is retained: Always, OnFailure or Never.
	KeyRetain = "retain"

	// Converted is the value of KeyConverted.
	Converted = "true"
)

// What a limit in bytes may be in the attribute sizeLimit: its form, the least and the most. Less is no use to a pod, and
// more is taken for a slip of the hand.
const (
	QuantityForm = `^[0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i|[eE][0-9]{1,2})?$`
	LeastBytes   = "64Ki"
	MostBytes    = "1Ei"
)
