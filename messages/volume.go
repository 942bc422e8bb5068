package messages

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Request is something asked of one volume. The front sends it to the
// supervisor, which passes it on to the volume's actor and starts that first
// where it does not run.
type Request interface {
	ToSupervisor
	ToVolume
	Failer
	// Volume is the volume that is asked.
	Volume() volume.ID
	// Until is when nobody waits for the answer any more; zero means never.
	Until() time.Time
}

// Routing is the part that all requests have in common.
type Routing struct {
	ID       volume.ID
	Deadline time.Time
}

// Volume returns the volume that is asked.
func (r *Routing) Volume() volume.ID { return r.ID }

// Until returns when nobody waits for the answer any more.
func (r *Routing) Until() time.Time { return r.Deadline }

func (*Routing) toSupervisor() {}
func (*Routing) toVolume()     {}

// PublishVolume orders a volume to be mounted at a target.
// Front -> supervisor -> volume.
type PublishVolume struct {
	Routing
	Publication volume.Publication
	Reply[struct{}]
}

// UnpublishVolume orders a volume to be unmounted from a target; it is
// retained when that was the last one. Front -> supervisor -> volume.
type UnpublishVolume struct {
	Routing
	Target string
	Reply[struct{}]
}

// VolumeStats asks what a volume that is mounted at Path uses.
// Front -> supervisor -> volume.
type VolumeStats struct {
	Routing
	Path string
	Reply[volume.Stats]
}

// AdoptVolume orders a data directory without a record to be retained.
// Scan for orphans -> supervisor -> volume.
type AdoptVolume struct {
	Routing
	Pod volume.PodUID
	Reply[struct{}]
}
