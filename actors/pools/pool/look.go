package pool

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/volume"
)

// probeNow asks the array, or does so again once it has answered.
func (p *poolActor) probeNow(c actor.Context) {
	if p.object == nil || p.ended {
		return
	}
	if p.probing.Runs() {
		p.again = true
		return
	}
	actors.StopTimer(p.timer)
	p.timer, p.soon = nil, false
	asked := probe{object: p.object, access: p.access, client: p.client, configured: p.configured, iqn: p.iqn}
	if err := p.probing.Begin(p.System, c.Self(), &workEnded{}, func() (probe, error) {
		found := p.probe(p.Context, asked)
		return found, found.err
	}); err != nil {
		p.schedule(c, p.ProbeInterval)
	}
}

// schedule sets the timer for the next probe, with a tenth of jitter.
func (p *poolActor) schedule(c actor.Context, in time.Duration) {
	in += time.Duration((rand.Float64() - 0.5) / 5 * float64(in))
	root, self := c.ActorSystem().Root, c.Self()
	actors.StopTimer(p.timer)
	p.timer = time.AfterFunc(in, func() { root.Send(self, &probeDue{}) })
}

// nodesConnect is how long after the controller's start its nodes may need to connect.
const nodesConnect = 30 * time.Second

// lookAfter is how soon a pool on a node is asked how it is when something there has changed.
const lookAfter = 2 * time.Second

// lookAgain asks the node of a pool how that is: at once, or soon.
func (p *poolActor) lookAgain(c actor.Context, soon bool) {
	switch {
	case !soon:
		p.probeNow(c)
	case p.probing.Runs():
		p.soon = true
	case !p.soon && p.timer != nil:
		p.soon = true
		p.schedule(c, lookAfter)
	}
}

// confirmAfter is how much sooner than usual a probe without an answer is repeated.
const confirmAfter = 5

// probed takes over what a probe has found.
func (p *poolActor) probed(c actor.Context, found probe) {
	if p.Context.Err() != nil {
		return
	}
	if found.counted {
		p.counts, p.counted = found.counts, true
	}
	next := p.ProbeInterval
	if found.err != nil {
		if p.unanswered(found.err) {
			next /= confirmAfter
		}
	} else {
		p.answered(found)
	}
	p.doubted, p.dirty = false, true
	if p.soon {
		next = min(next, lookAfter)
	}
	switch {
	case p.ended:
	case p.again:
		p.again = false
		p.probeNow(c)
	default:
		p.schedule(c, next)
	}
	p.startSync(c)
	if p.object.DeletionTimestamp != nil {
		p.finalize(c)
	}
}

// unanswered: the array counts as unreachable after the second probe without an answer, or the first
// one when a call got none either, or when it has not been reached before. It returns true while the
// failure has to be confirmed.
func (p *poolActor) unanswered(err error) (confirm bool) {
	p.failures++
	if p.reachable.status == "" && errors.Is(err, array.ErrNodeAway) && time.Since(p.Started) < nodesConnect {
		return true
	}
	if p.reachable.ok() && p.failures < 2 && !p.doubted {
		return true
	}
	p.reachable = bad(unreachableReason(err), volume.OneLine(err))
	return false
}

// unreachableReason is one word for why an array gives no answer.
func unreachableReason(err error) string {
	switch {
	case errors.Is(err, array.ErrNodeAway):
		return "NodeAway"
	case errors.Is(err, array.ErrDiskAway):
		return "DiskAway"
	case errors.Is(err, array.ErrCredentials):
		return "InvalidCredentials"
	case errors.Is(err, array.ErrTLS):
		return "TLSError"
	case errors.Is(err, array.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	case errors.Is(err, array.ErrBadAnswer):
		return "BadAnswer"
	}
	return "NetworkError"
}

// answered takes over what the array has said.
func (p *poolActor) answered(found probe) {
	p.failures, p.reachable = 0, good("Reachable")
	p.compatible = found.compatible
	p.access, p.client = found.access, found.client
	if !p.compatible.ok() {
		return
	}
	p.portalSeen(cmp.Or(p.last.health.Portal, p.object.Status.VPSA.Portal), found.health.Portal)
	p.last, p.iqn = found, found.health.IQN
	p.wanted(found)
	p.mode = modeOf(found.on, p.object.Spec.CapacityThresholds)
	p.capacity = capacityVerdict(p.mode, found.on, rules.KindOfPool(p.object))
	p.healthy = good("Healthy")
	if found.on.Failed != "" {
		p.healthy = bad("PoolFailed", found.on.Failed)
	}
	if found.object.Generation != p.object.Generation {
		p.again = true // it was changed meanwhile
		return
	}
	p.configured = found.configured
}
