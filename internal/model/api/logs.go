package api

// The volume that has what the containers of a pod printed: for each container a directory of its name, with the files of
// the kubelet.
const (
	// MissingLogs is the file in it that says what is missing, a [LogsMissing] as JSON. Without the file nothing is.
	MissingLogs = "missing.json"
	// PodEnd is the file in it that says how the pod has ended, as package podend encodes it. It is missing where that was not
	// known.
	PodEnd = "pod.json"

	// LogsLimit and LogsUnreadable are why something is missing: the limit of the node, or what the kubelet had could not be
	// read.
	LogsLimit      = "limit"
	LogsUnreadable = "unreadable"
)

// LogsMissing says what is missing of the logs of a pod.
type LogsMissing struct {
	Files []LogMissing `json:"files,omitempty"`
	// Interrupted: the daemon ended while it copied them, and then they were gone. Anything may be missing.
	Interrupted bool `json:"interrupted,omitempty"`
}

// LogMissing says what is missing of one file.
type LogMissing struct {
	Container string `json:"container"`
	File      string `json:"file"`
	// Bytes is how many are missing: at the beginning of the file if Why is [LogsLimit], else at its end.
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
}
