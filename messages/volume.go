package messages

import (
	"time"

	"go.opentelemetry.io/otel/trace"

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
	// Origin is the call that the request comes from; nil when that is not traced.
	Origin() *Origin
}

// Origin ties a request to the trace of the call that it comes from.
type Origin struct {
	// Parent is the call's span.
	Parent trace.SpanContext
	// Asked is when the request was sent.
	Asked time.Time
}

// Routing is the part that all requests have in common.
type Routing struct {
	ID       volume.ID
	Deadline time.Time
	// From is nil when nothing is traced, so that it costs nothing then.
	From *Origin
}

// Volume returns the volume that is asked.
func (r *Routing) Volume() volume.ID { return r.ID }

// Until returns when nobody waits for the answer any more.
func (r *Routing) Until() time.Time { return r.Deadline }

// Origin returns the call that the request comes from.
func (r *Routing) Origin() *Origin { return r.From }

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
