package tasks

import (
	"context"
	"errors"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// needsOfVolume returns what a volume needs of its array.
func needsOfVolume(v *v1alpha1.PoolVolume) pools.Needs {
	flags := v.Spec.Flags
	return pools.Needs{
		Protocol: pools.Protocol(v.Spec.Protocol), Compress: flags.Compress, Dedupe: flags.Dedupe, Encrypt: flags.Encrypt,
		Options: pools.OptionsText(flags.Extra),
	}
}

// took tells the pool what its array has made of a request for a volume.
func (t *task) took(ctx context.Context, v *v1alpha1.PoolVolume, err error) {
	m := &poolmessages.PoolTook{Routing: messages.RoutingTo(ctx, rules.KindPool, v.Spec.PoolName), Needs: needsOfVolume(v)}
	switch {
	case rules.KindOfVolume(v) == pools.KindLocal, err != nil && (rules.IsOpen(err) || !errors.Is(err, array.ErrDeclined)):
		return
	case err != nil:
		m.Declined = rules.Shortly(err)
	}
	m.Prepare()
	t.Root.Send(t.Supervisor(), m)
}
