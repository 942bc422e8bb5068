package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
)

// reachInterval is the time between two looks at how many nodes are connected.
const reachInterval = 15 * time.Second

var errNoNode = errors.New("no node is connected to this gateway; the log of a daemon says why it does not connect")

// reach says in the log when no node is connected although some have a daemon, and when that is over. The replica stays
// ready meanwhile: a list is then an error that names the nodes, while the deletion of namespaces in the whole cluster
// would wait for a gateway that is not ready.
type reach struct {
	count func() (expected, connected int)
	log   logr.Logger
	// none is since when no node has been connected, zero if one is or none should be; said: the log says so.
	none time.Time
	said bool
}

// run looks until ctx ends.
func (r *reach) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.look()
		waiting, cancel := context.WithTimeout(ctx, reachInterval)
		<-waiting.Done()
		cancel()
	}
}

// look gives the nodes as much time as a replica that starts does. A cluster without daemons needs none connected.
func (r *reach) look() {
	expected, connected := r.count()
	switch {
	case expected > 0 && connected == 0:
		if r.none.IsZero() {
			r.none = time.Now()
		}
		if !r.said && time.Since(r.none) >= settleTime {
			r.said = true
			r.log.Error(errNoNode, "volumes that nodes retain can be neither listed nor read", "nodesWithDaemon", expected)
		}
	case r.said:
		r.log.Info("nodes are connected again, or none has a daemon", "nodesWithDaemon", expected, "connected", connected)
		fallthrough
	default:
		r.none, r.said = time.Time{}, false
	}
}
