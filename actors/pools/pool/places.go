package pool

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// alone reports whether no other Pool has the pool on the array that a probe has found.
func (f *probe) alone(ctx context.Context, e *env.Environment) (verdict, error) {
	at := poolmessages.Place{IQN: f.health.IQN, PoolID: f.on.ID}
	has, err := actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.TakePlace{Pool: f.object.Name, At: at})
	if err != nil || has == f.object.Name {
		return f.compatible, err
	}
	if f.object.Spec.Local != nil {
		return bad("SamePool", fmt.Sprintf("the disk with the UUID %s is that of Pool %s already; delete this Pool", at.PoolID, has)), nil
	}
	return bad("SamePool", fmt.Sprintf("%s of the array %s is that of Pool %s already; delete this Pool", at.PoolID, at.IQN, has)), nil
}
