package messages

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/katbox/katbox/internal/model/volume"
)

// Request is something asked of one volume. The front sends it to the supervisor, which passes it
// on to the volume's actor and starts that first where it does not run.
type Request interface {
	ToVolume
	Failer
	// Route is for whom the request is.
	Route() *Routing
}

// Routing is the part that all requests have in common.
type Routing struct {
	// ID is the volume that is asked.
	ID volume.ID
	// Deadline is when the caller stops waiting; zero means never.
	Deadline time.Time
	// Origin is the call that the request comes from; nil when that is not traced.
	Origin *Origin
}

// Origin ties a request to the trace of the call that it comes from.
type Origin struct {
	// Parent is the call's span.
	Parent trace.SpanContext
	// Asked is when the request was sent.
	Asked time.Time
}

// Route returns for whom the request is.
func (r *Routing) Route() *Routing { return r }

// Expired reports whether the caller does not wait any more.
func (r *Routing) Expired() bool { return !r.Deadline.IsZero() && !time.Now().Before(r.Deadline) }

func (*Routing) toVolume() {}

// PublishVolume orders a volume to be mounted at a target. Front -> supervisor -> volume.
type PublishVolume struct {
	Routing
	Publication volume.Publication
	Reply[struct{}]
}

// VolumeIs says what is known of a volume: an operation has ended, or a publish was refused. It comes before the
// answer to that. Volume -> supervisor.
type VolumeIs struct {
	ID volume.ID
	// Record is nil if nothing is known of it.
	Record *volume.Record
	// After is the last publish that the volume has begun or refused; nil if there is none. A later one
	// may be on its way: then the volume is about to be published.
	After *PublishVolume
}

// UnpublishVolume orders a volume to be unmounted from a target; after its last target the volume
// is retained. Front -> supervisor -> volume.
type UnpublishVolume struct {
	Routing
	Target string
	Reply[struct{}]
}

// VolumeStats asks what a volume that is mounted at Path uses. Front -> supervisor -> volume.
type VolumeStats struct {
	Routing
	Path string
	Reply[volume.Stats]
}

// AdoptVolume orders a data directory without a record to be retained. Orphan search -> supervisor
// -> volume.
type AdoptVolume struct {
	Routing
	Pod volume.PodUID
	Reply[struct{}]
}

// DeleteVolume orders a retained volume to be deleted. Supervisor -> volume.
type DeleteVolume struct {
	// Reason reports whether its lifespan is over or room is needed before.
	Reason volume.Reason
	// Factor is the pressure factor that made it go early, for the log.
	Factor float64
	// Tries is how often its deletion has failed before.
	Tries int
}

// PodsSeen tells which pod directories the kubelet has at present. Pod watch -> supervisor -> the
// actors of the volumes that are not being deleted, unless the directory shows no pod at all.
type PodsSeen struct {
	// Names of the directories below <kubelet dir>/pods. Shared, read only.
	Names map[string]struct{}
	// Mounted returns where what lies at a place was mounted then; nil when that was not looked at.
	Mounted func(volume.Place) []string
	// At is when they were read.
	At time.Time
}

// FindUnknown asks which of these places, where there may be data directories, belong to no known
// volume. Orphan search -> supervisor.
type FindUnknown struct {
	Places []volume.Place
	Reply[[]volume.Place]
}

func (*DeleteVolume) toVolume() {}
func (*PodsSeen) toVolume()     {}
