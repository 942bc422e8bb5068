package pools

import (
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// takePlace decides in the supervisor's turn.
func (o *owner) takePlace(m *poolmessages.TakePlace) string {
	if has := o.places[m.At]; has != "" && has != m.Pool {
		return has
	}
	if o.pools[m.Pool] != nil {
		o.places.Leave(m.Pool)
		o.places[m.At] = m.Pool
	}
	return m.Pool
}
