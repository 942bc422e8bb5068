package messages

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// AtRest says that a volume has nothing to do: its record can be put to sleep
// and its actor can end. Volume -> supervisor.
type AtRest struct {
	ID volume.ID
	// Actor is the sender's name. An actor's end overtakes what it said last, so
	// that its words can arrive when the volume has another actor.
	Actor string
	// Record is what to remember; nil when nothing is known of the volume.
	Record *volume.Record
	// Failed says why its deletion did not succeed; nil when none was tried. It is
	// tried again after a while. Tries is how often in a row.
	Failed error
	Tries  int
	// Received counts the messages that the supervisor's actor has handled. When
	// the supervisor has sent more, the volume is not at rest any more.
	Received uint64
}

// Stuck says that a volume cannot get on with its unmount or deletion. The
// supervisor sends Resume after a while if it is the former; a deletion waits
// asleep. Volume -> supervisor.
type Stuck struct {
	ID volume.ID
	// Actor is the sender's name, as in AtRest.
	Actor string
	Phase volume.Phase
	// Attempt counts the failures in a row, from 1.
	Attempt int
	Err     error
	// Record is for the log.
	Record volume.Record
}

// Resume orders a volume to get on with what it is in the middle of.
// Supervisor -> volume.
type Resume struct{}

// DeleteVolume orders a retained volume to be deleted. Supervisor -> volume.
type DeleteVolume struct {
	// Reason tells whether its time is over or space is wanted before.
	Reason volume.Reason
	// Factor is the pressure factor that made it go early, for the log.
	Factor float64
	// Tries is how often that has failed before.
	Tries int
}

// PodsSeen tells which pod directories the kubelet has at present.
// Watch over the pods directory -> supervisor -> the actors of the volumes that are
// not being deleted, unless the directory shows no pod at all.
type PodsSeen struct {
	// Names of the directories below <kubelet dir>/pods. Shared, read only.
	Names map[string]struct{}
	// At is when they were read.
	At time.Time
}

// Status asks whether the supervisor and the recorder answer.
// Front -> supervisor -> recorder.
type Status struct{ Reply[struct{}] }

// ProbeStore asks whether records can be made durable at present. Where there is
// no room for them the disk answers all the same, which is enough.
// Front -> supervisor -> recorder.
type ProbeStore struct{ Reply[struct{}] }

func (*AtRest) toSupervisor()     {}
func (*Stuck) toSupervisor()      {}
func (*Status) toRecorder()       {}
func (*Status) toSupervisor()     {}
func (*ProbeStore) toRecorder()   {}
func (*ProbeStore) toSupervisor() {}
func (*Resume) toVolume()         {}
func (*DeleteVolume) toVolume()   {}
func (*PodsSeen) toVolume()       {}
