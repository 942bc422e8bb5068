package messages

import "github.com/katbox/katbox/internal/model/volume"

// EndVolume tells how the pod with this UID ended, whose volume this is. The answer comes once a
// retained volume has that durably; a volume that is awake writes it with its next change.
// Front -> supervisor -> volume.
type EndVolume struct {
	Routing
	Pod     volume.PodUID
	Outcome volume.Outcome
	Reply[struct{}]
}
