package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/messages"
)

// state is how far the supervisor is with a volume's actor.
type state int

const (
	// waking: the retention actor was asked for the volume's record.
	waking state = iota
	// active: the actor runs.
	active
	// ending: the actor was told to end; requests wait until it has.
	ending
	// parked: the actor failed too often and is restarted only after a while.
	parked
)

// entry is what the supervisor keeps of a volume that is awake.
type entry struct {
	state state
	actor *actor.PID
	// question is the number of the Wake that the volume waits for.
	question uint64
	// waiting are the requests that came while the actor could not take them.
	waiting []messages.Request
	// sent counts the messages to the actor.
	sent uint64
	// evicting: the retention actor waits for the end of the deletion.
	evicting bool
	// handedBack is an eviction that came while the actor was ending.
	handedBack *messages.Evict
	// resuming: a timer is set to have the volume try again.
	resuming bool
	// failures are the panics of the actor within the window, up to lastFailure.
	failures    int
	lastFailure time.Time
	// restartAt is when a parked actor is restarted.
	restartAt time.Time
}
