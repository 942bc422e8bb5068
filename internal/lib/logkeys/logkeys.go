// Package logkeys contains the keys of log lines that several packages use, so that one
// filter finds everything about a volume, a pod or a path.
package logkeys

import "github.com/katbox/katbox/internal/model/volume"

// Keys of log lines.
const (
	Namespace = "namespace"
	// Pod is the pod's name, PodUID its UID.
	Pod    = "pod"
	PodUID = "podUID"
	// Volume is the volume's name in the pod's spec, VolumeID its ID.
	Volume   = "volume"
	VolumeID = "volumeID"
	Phase    = "phase"
	// Target is where a volume is mounted, Path where its files are on the node.
	Target = "target"
	// Staging is where a volume of an array is made ready for all pods of a node.
	Staging = "staging"
	Path    = "path"
	Node    = "node"
	// Directory is where something is that is not a volume's.
	Directory = "directory"
	// Device is the path of a disk's node.
	Device = "device"
	// Cause is the error behind a line that is not an error itself.
	Cause = "cause"
	// User is who asks for something through the gateway, AuditID the request in the API server's audit
	// log.
	User    = "user"
	AuditID = "auditID"
	// Interval is the time until the next attempt.
	Interval = "interval"
)

// About returns the keys and values of a line about a volume: its known names, and then
// more.
func About(r volume.Record, more ...any) []any {
	fields := make([]any, 0, 10+len(more))
	for _, field := range [...]struct{ key, value string }{
		{Namespace, r.Namespace}, {Pod, r.PodName}, {PodUID, string(r.Pod)}, {Volume, r.VolumeName}, {VolumeID, string(r.ID)},
	} {
		if field.value != "" {
			fields = append(fields, field.key, field.value)
		}
	}
	return append(fields, more...)
}
