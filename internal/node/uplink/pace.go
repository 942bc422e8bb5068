package uplink

import (
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
)

// pace sets the times of an Uplink; tests shorten them.
type pace struct {
	// first spreads the first attempt to connect to an address, back the first one after a connection
	// was lost, or after the gateway could not be reached: the gateway may have been restarted, and all
	// nodes come at once.
	first, back time.Duration
	// busy spreads the attempts after the gateway had no time.
	busy time.Duration
	// refused are the waits after refusals that a person has to do something about.
	refused retry.Backoff
	// resolve is the time between two looks at the addresses of a name, missed that while an address
	// has no connection.
	resolve, missed time.Duration
	// connect bounds an attempt to connect, lookup one to resolve a name.
	connect, lookup time.Duration
	// life is how long a connection is used, drain how long what runs on it may go on then, grace how
	// long the handlers of connections that were cut may take to end.
	life, drain, grace time.Duration
	// settled is the age of a connection from which on its loss is news.
	settled time.Duration

	// quiet is the longest time between two lines of a summary, changes the shortest between two with
	// changes, gather how long asks wait for others.
	quiet, changes, gather time.Duration
	// again is after how long an ask without an answer is repeated.
	again time.Duration
	// stall is how long the gateway may take to read a line.
	stall time.Duration
	// ping is how long a connection may be silent before the gateway is asked whether it is there, and
	// how long that answer may take.
	ping time.Duration
}

var usualPace = pace{
	first: time.Second, back: 30 * time.Second, busy: 10 * time.Second,
	refused: retry.Backoff{First: 5 * time.Second, Longest: 2 * time.Minute, Jitter: 0.5},
	resolve: 30 * time.Second, missed: 10 * time.Second, connect: 10 * time.Second, lookup: 5 * time.Second,
	life: time.Hour, drain: time.Hour, grace: time.Second, settled: time.Minute,
	quiet: 15 * time.Second, changes: 5 * time.Second, gather: 50 * time.Millisecond, again: 30 * time.Second,
	stall: 30 * time.Second, ping: 15 * time.Second,
}
