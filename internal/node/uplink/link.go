package uplink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
)

// link keeps a connection to one address of the gateway.
type link struct {
	u       *Uplink
	target  target
	address netip.AddrPort
	log     logr.Logger
	// reported is the cause that was logged last; it is empty when all is well.
	reported string
	// refusals counts attempts in a row that were refused.
	refusals int

	// first spreads the first attempt. surplus has a value when other connections are enough.
	first   time.Duration
	surplus chan struct{}
	// replica is the one at this address that another address has a connection to; empty for none.
	replica string

	// These are guarded by Uplink.mu. wanted: the node is to connect to this address; standsBy: another one leads to the same
	// replica; forwards: the replica there asks others; over: the node has enough other ones.
	wanted, standsBy, forwards, over bool

	since time.Time
	err   error
}

// report is called with Uplink.mu.
func (l *link) report() State {
	return State{Target: l.target.String(), Address: l.address.String(), Since: l.since, StandsBy: l.standsBy, Err: l.err}
}

// note keeps how it stands with the link. A connection that is renewed has a new since.
func (l *link) note(since time.Time, err error) {
	l.u.mu.Lock()
	defer l.u.mu.Unlock()
	if l.since.IsZero() != since.IsZero() {
		change := 1
		if since.IsZero() {
			change = -1
		}
		l.u.peer.counts.connected(l.u.cfg.Metrics, change)
	}
	l.since, l.err = since, err
	l.standsBy = errors.As(err, new(*errSame))
	signal(l.u.changed)
}

// run connects, and connects anew before a connection is too old and after it was lost, until ctx
// ends or the name no longer has the address and the last connection is over.
func (l *link) run(ctx context.Context) {
	defer l.note(time.Time{}, errStopping)
	// current is the one to ask on, old the one before, on which something may still run.
	var current, old *connection
	// settled fires when a connection that came after a failure has lasted.
	var settled <-chan time.Time
	due := time.NewTimer(retry.Below(l.first))
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-settled:
			l.reported, settled = "", nil
			l.log.Info("connected to " + l.u.peer.String() + " again")
		case <-current.over():
			due.Reset(l.lost(current))
			current, settled = nil, nil
		case <-l.surplus:
			due.Reset(retry.Below(l.u.pace.back))
		case <-due.C:
			if l.u.leave(l) {
				current.leave()
				return
			}
			if current != nil && old.open() {
				due.Reset(l.u.pace.missed) // a gateway takes two connections of a node
				continue
			}
			if current == nil && l.u.leadsElsewhere(l) {
				due.Reset(retry.Around(l.u.pace.missed))
				continue
			}
			next, err := l.connect(ctx)
			l.replica = ""
			same := (*errSame)(nil)
			switch {
			case ctx.Err() != nil:
				return // a connection that was made is closed with the others
			case errors.As(err, &same):
				if current == nil { // else that of an earlier process, which ends by itself
					l.standBy(same)
				}
				due.Reset(retry.Around(l.u.pace.missed))
				continue
			case err != nil:
				due.Reset(l.failed(err, current))
				continue
			}
			due.Reset(retry.Around(l.u.pace.life))
			if l.connected(current, next) {
				settled = time.After(l.u.pace.settled)
			}
			if current != nil { // else the old one is still that from before
				current.retire()
				old = current
			}
			current = next
		}
	}
}

// connected notes a new connection. It reports whether that is to be logged once it has lasted: a
// connection that is lost again at once is no news.
func (l *link) connected(before, now *connection) (again bool) {
	l.refusals = 0
	l.u.peer.counts.attempted(l.u.cfg.Metrics, "connected")
	l.u.mu.Lock()
	l.forwards = now.forwards
	l.u.mu.Unlock()
	l.note(now.began, nil)
	switch {
	case l.reported != "":
		return true
	case before == nil:
		l.log.Info("connected to " + l.u.peer.String())
	default:
		l.log.V(1).Info("the connection to " + l.u.peer.String() + " is renewed")
	}
	return false
}

// failed notes why no connection was made. It returns when to try again.
func (l *link) failed(err error, current *connection) time.Duration {
	since := time.Time{}
	if current != nil {
		since = current.began
	}
	l.note(since, err)
	var wait time.Duration
	outcome := "failed"
	var r *refusal
	switch {
	case !errors.As(err, &r):
		wait = retry.Below(l.u.pace.back)
	case r.busy:
		outcome, wait = "busy", r.retryAfter+retry.Below(l.u.pace.busy)
	default:
		outcome = "refused"
		l.refusals++
		wait = max(l.u.pace.refused.After(l.refusals), r.retryAfter)
	}
	if r == nil || r.busy {
		l.refusals = 0
	}
	l.u.peer.counts.attempted(l.u.cfg.Metrics, outcome)
	l.say(err, wait)
	return wait
}

// lost notes that a connection ended by itself. It returns when to connect again.
func (l *link) lost(c *connection) time.Duration {
	err := fmt.Errorf("the connection to %s is lost: %w", l.u.peer, c.cause())
	l.note(time.Time{}, err)
	wait := retry.Below(l.u.pace.back)
	l.say(err, wait)
	return wait
}

// say logs each cause once.
func (l *link) say(err error, wait time.Duration) {
	if err.Error() == l.reported {
		return
	}
	l.reported = err.Error()
	l.log.Error(err, "not connected to "+l.u.peer.String()+", trying again until it works",
		logkeys.Interval, duration.Format(wait.Round(time.Second)))
}

var errStopping = errors.New("the daemon is stopping")
