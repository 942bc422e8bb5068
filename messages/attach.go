package messages

import "github.com/katbox/katbox/internal/model/volume"

// ProlongVolume tells a retained volume that a pod which had it attached has ended: it is kept for a
// last grace from now on, at least. The answer comes once that is durable. Volume -> supervisor ->
// volume.
type ProlongVolume struct {
	Routing
	// By is the volume that the pod had it attached as.
	By volume.ID
	Reply[struct{}]
}
