package rules

import (
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// PlaceOf returns the place that an earlier run has found for a Pool; an empty one where it has found none.
func PlaceOf(p *v1alpha1.Pool) poolmessages.Place {
	if p.Spec.Local != nil {
		return poolmessages.Place{IQN: p.Status.Local.UUID, PoolID: p.Status.Local.UUID}
	}
	return poolmessages.Place{IQN: p.Status.VPSA.IQN, PoolID: p.Status.VPSA.PoolID}
}
