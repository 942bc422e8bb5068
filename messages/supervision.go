package messages

import "github.com/katbox/katbox/internal/model/volume"

// AtRest says that a volume has nothing to do, so that its actor can end. Volume -> supervisor.
type AtRest struct {
	ID volume.ID
	// Actor is the sender's name. An actor's end overtakes its last messages, so that they can
	// arrive when the volume has another actor.
	Actor string
	// State is what its kind keeps of the volume from now on.
	State any
	// Received counts the messages that the actor has handled. When the supervisor has sent more,
	// the volume is not at rest any more.
	Received uint64
}

// Stuck says that a volume cannot finish what it has begun. The supervisor sends Resume after a
// while. Volume -> supervisor.
type Stuck struct {
	ID volume.ID
	// Actor is the sender's name, as in AtRest.
	Actor string
	// Attempt counts the failures in a row, from 1.
	Attempt int
}

// Resume orders a volume to go on with what it has begun. Supervisor -> volume.
type Resume struct{}

// Status asks whether the supervisor and the recorder answer. Front -> supervisor -> recorder.
type Status struct{ Reply[struct{}] }

func (*Resume) toVolume() {}
