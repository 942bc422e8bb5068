package ephemeral

import (
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
)

// futileBackoff is how long nothing goes early after that has made no room. Then one volume goes, to
// see whether it does now: what holds the room may have let go.
var futileBackoff = retry.Backoff{First: time.Minute, Longest: 30 * time.Minute, Jitter: 0.1}

// stopped says that deletions make no room. The zero value says that they do, as far as is known.
type stopped struct {
	// tries is how often they made none, again when the next volume goes.
	tries int
	again time.Time
	// unproven: too few went to be certain. Only guaranteed volumes are kept for that.
	unproven bool
}

// judged takes over whether deletions make room.
func (r *retention) judged(v lifespan.Verdict) {
	switch {
	case v == lifespan.MakesNone:
		r.stopEarly()
	case v == lifespan.MakesRoom && r.stopped.tries > 0:
		r.log.Info("deleting retained volumes makes room again")
		r.goOn()
	}
}

// spare keeps the guaranteed volumes, which are all that is left, because what went early has made no room so far. That was too
// little to be certain, so what is retained later may go.
func (r *retention) spare() {
	if r.stopped.tries == 0 {
		r.keepOthers(r.making.Yield(), true)
	}
}

// stopEarly lets nothing go early for a while.
func (r *retention) stopEarly() {
	came := r.making.GiveUp()
	if r.stopped.tries > 0 && !r.stopped.unproven && time.Now().Before(r.stopped.again) {
		return // it was on its way then
	}
	r.keepOthers(came, false)
}

// keepOthers notes, and says, that volumes stay because others made no room.
func (r *retention) keepOthers(came lifespan.Yield, unproven bool) {
	r.stopped.unproven = unproven
	r.stopped.tries++
	wait := futileBackoff.After(r.stopped.tries)
	r.stopped.again = time.Now().Add(wait)
	r.metrics.EvictionsStopped(true)
	r.log.Error(nil, "deleting retained volumes makes no room, keeping the others: a process outside has their files open, "+
		"or something shares their blocks; trying one again after a while",
		"deleted", came.Volumes, "promisedBytes", came.Promised.Bytes, "cameBytes", came.Came.Bytes,
		"promisedInodes", came.Promised.Inodes, "cameInodes", came.Came.Inodes, "kept", r.index.Listed(), "after", duration.Format(wait))
}

func (r *retention) goOn() {
	r.stopped = stopped{}
	r.making.Trust()
	r.metrics.EvictionsStopped(false)
}

// yields tells the outlook whether deletions make room.
func (r *retention) yields(o *outlook) {
	if r.stopped.tries > 0 {
		o.trying = r.making.Early() > 0
		o.futile = !r.stopped.unproven && (o.trying || o.now.Before(r.stopped.again))
		if !o.futile && r.making.Enough() {
			r.goOn() // whatever it was, it is over
		}
		o.again = r.stopped.again
	}
	o.doubtful = r.making.Doubtful()
}
