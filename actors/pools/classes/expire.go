package classes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

type (
	// retentionDue: it is time to look which retained volumes go.
	retentionDue struct{}
	// retainedEnded announces that a worker has deleted a retained volume, or could not.
	retainedEnded struct {
		name, pool string
		err        error
	}
)

// expire deletes the retained volumes whose time has come, and sets the timer for the next one.
func (k *classes) expire(c actor.Context) {
	actors.StopTimer(k.expiry)
	k.expiry = nil
	if !k.listed || k.Context.Err() != nil {
		return
	}
	now := time.Now()
	due, again := k.retention.due(now)
	for _, e := range due {
		reason, why := pools.Expired, "its lifespan of "+duration.Format(e.lifespan)+" is over"
		if e.early {
			p := k.retention.pools[e.pool]
			reason = pools.Evicted
			why = fmt.Sprintf("pool %s is nearly full, which leaves %.0f%% of lifespans of %s", e.pool, 100*p.factor, duration.Format(e.lifespan))
		}
		k.end(c, e.keptVolume, e.early, reason, why)
	}
	root, self := c.ActorSystem().Root, c.Self()
	k.expiry = time.AfterFunc(again.Sub(now), func() { root.Send(self, &retentionDue{}) })
}

// end lets a worker delete a retained volume. trial: it is judged by the room that this makes.
func (k *classes) end(c actor.Context, v *keptVolume, trial bool, reason pools.End, why string) {
	order := &poolmessages.EndRetained{
		Routing: messages.Routing{ID: messages.KeyOf(rules.KindVolume, v.name)}, Name: v.name, Since: v.written, Lifespan: v.lifespan,
		Reason: reason, Why: why,
	}
	name, pool := v.name, v.pool
	self := c.Self()
	k.retention.begin(v, trial)
	err := actors.InWorker(k.System, func() error {
		ctx, cancel := context.WithTimeout(k.Context, env.LongestOperation)
		defer cancel()
		return k.Change(ctx, order)
	}, func(err error) { k.Root.Send(self, &retainedEnded{name, pool, err}) })
	if err != nil { // it is stopping
		k.retention.ended(name, pool, false, time.Now())
	}
}

// ended takes over what came of the deletion of a retained volume, and lets go on what waits for its room.
func (k *classes) ended(c actor.Context, m *retainedEnded) {
	k.retention.ended(m.name, m.pool, m.err == nil, time.Now())
	if m.err != nil && !errors.Is(m.err, volume.ErrConflict) && k.Context.Err() == nil {
		k.Log.Info("a retained volume cannot be deleted yet", "volume", m.name, "pool", m.pool, "cause", m.err.Error())
	}
	k.madeRoom(c, m)
	k.expire(c)
}
