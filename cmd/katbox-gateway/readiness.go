package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// settleTime is how long a new replica waits for the nodes: after a loss they all come back within
	// 30 s. Without it a list would miss those that have not connected yet.
	settleTime = 35 * time.Second
	// settleShare is the share of the expected nodes that is enough.
	settleShare = 0.95
)

// readiness reports whether the API server may ask this replica. It is ready once everything is there
// that it needs, and the nodes are connected or have had time to. What it needs may be lost again; how
// many nodes are connected matters only at the start.
type readiness struct {
	mu    sync.Mutex
	needs []func() error
	// count counts nodes; nil before the port for them is about to open.
	count   func() (expected, connected int)
	since   time.Time
	settled bool
}

// need adds what returns why it is not ready.
func (r *readiness) need(check func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.needs = append(r.needs, check)
}

// settle begins the wait for the nodes.
func (r *readiness) settle(count func() (expected, connected int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.since = count, time.Now()
}

// check returns nil if the API server may ask this replica, else why not.
func (r *readiness) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		return errors.New("starting: waiting for the API server")
	}
	for _, check := range r.needs {
		if err := check(); err != nil {
			return err
		}
	}
	if r.settled {
		return nil
	}
	expected, connected := r.count()
	if float64(connected) < settleShare*float64(expected) && time.Since(r.since) < settleTime {
		return fmt.Errorf("starting: %d of %d nodes are connected", connected, expected)
	}
	r.settled = true
	return nil
}
