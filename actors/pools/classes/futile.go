package classes

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// futileBackoff is how long nothing goes early in a pool after that has made no room. An array may take minutes to
// free what was deleted.
var futileBackoff = retry.Backoff{First: 10 * time.Minute, Longest: 6 * time.Hour, Jitter: 0.1}

// batchPart: one part in so many of a pool's retained volumes may be on their way before it is known whether they make
// room.
const batchPart = 8

// proof says whether the volumes of a pool that go early make the room that they promise: a snapshot or a clone may
// share their blocks. The zero value says that they do, as far as is known.
type proof struct {
	yield lifespan.Yield
	// tries is how often they made none, again when the next one goes.
	tries int
	again time.Time
}

// futile reports whether nothing goes early at a time.
func (p *proof) futile(now time.Time) bool { return p.tries > 0 && now.Before(p.again) }

// judge judges what an answer of the array shows that began at a time. It reports whether nothing goes early from now on.
func (p *keptPool) judge(at time.Time) (stopped bool) {
	after := endsAtOnce
	if p.tries > 0 {
		after = 1 // the next one is judged alone
	}
	switch p.yield.Judge(volume.Size{Bytes: max(p.wanted-p.free, 0)}, after) {
	case lifespan.MakesRoom:
		p.tries = 0
	case lifespan.MakesNone:
		p.yield = lifespan.Yield{}
		if p.futile(at) {
			return false // it was on its way then
		}
		p.tries++
		p.again = at.Add(futileBackoff.After(p.tries))
		return true
	case lifespan.NoVerdict:
	}
	if p.factor >= 1 && !p.futile(at) {
		p.tries = 0 // whatever it was, it is over
	}
	return false
}

// onTrial is how many volumes went to make room, or are on their way, and are not judged yet.
func (p *keptPool) onTrial() int {
	n := p.yield.Volumes
	for _, left := range p.relief {
		if left.trial {
			n++
		}
	}
	return n
}

// mayGo is how many more volumes may go early.
func (p *keptPool) mayGo() int {
	most := max(endsAtOnce, len(p.volumes)/batchPart)
	if p.tries > 0 {
		most = 1
	}
	return max(most-p.onTrial(), 0)
}

// tellFutile tells that nothing goes early in a pool for a while.
func (k *classes) tellFutile(c actor.Context, pool string) {
	p := k.retention.pools[pool]
	text := fmt.Sprintf("deleting retained volumes makes no room, and the other %d are kept: snapshots or clones may share their blocks, "+
		"or the array frees them later; the next one may go in %s", len(p.volumes), duration.Format(time.Until(p.again)))
	k.Log.Info("nothing goes early in a pool", "pool", pool, logkeys.Cause, text)
	c.Send(k.Supervisor(), &poolmessages.WarnPool{Pool: pool, Reason: "EvictionsStopped", Text: text})
}
