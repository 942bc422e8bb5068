package messages

import "github.com/katbox/katbox/internal/model/volume"

// KeepLogs orders the logs of a pod to be kept as a volume of it, or kept anew. The answer comes once they are retained, or
// there are none. Front -> supervisor -> volume.
type KeepLogs struct {
	Routing
	// Of is the volume of the pod whose terms they get, as it is known. If it is known otherwise by now, the answer is a
	// [volume.ErrConflict].
	Of volume.Record
	Reply[struct{}]
}

// LogsKept says that all is done about the logs of a pod, for which the order was given. Front -> supervisor.
type LogsKept struct{ Pod volume.PodUID }

// KeepEnd orders what is known of how a pod has ended to be kept with its logs, if these are retained; where they are not yet,
// it is kept with them later. Front -> supervisor -> volume.
type KeepEnd struct {
	Routing
	Pod volume.PodUID
	Reply[struct{}]
}
