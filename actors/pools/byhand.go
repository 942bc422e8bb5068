package pools

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
	"github.com/katbox/katbox/messages"
)

// mayGoOn asks whether a PoolAttachment that was never attached may be: a person may have made it, and no
// call was admitted for it. Task -> supervisor.
type mayGoOn struct {
	attachment string
	messages.Reply[struct{}]
}

// mayFinish lets a volume that is not shared be on one node at a time, as mayAttach does. Of two
// attachments that are not made yet, the older one goes on: the other was not admitted beside it.
func (o *owner) mayFinish(name string) error {
	a := o.index.attachments[name]
	if a == nil || a.server != "" {
		return nil
	}
	beside := func(node string, shared bool) bool { return node == a.node || shared && a.flags.has(flagShared) }
	refuse := func(node string) error {
		return fmt.Errorf("%w: volume %s is attached to node %s, and not shared", pools.ErrInUse, a.volume, node)
	}
	for _, other := range o.index.attachmentsOf[a.volume] {
		b := o.index.attachments[other]
		switch {
		case beside(b.node, b.flags.has(flagShared)):
		case b.server == "" && b.flags.has(flagFailed): // it was refused
		case b.server != "", b.created < a.created, b.created == a.created && other < name:
			return refuse(b.node)
		}
	}
	for _, under := range o.admitted.attaching(a.volume) {
		if !beside(under.node, under.shared) {
			return refuse(under.node)
		}
	}
	return nil
}

// admitted asks whether an attachment whose resource says that it is to be made may be. One that may not
// is Failed.
func (t *task) admitted(ctx context.Context, a *v1alpha1.PoolAttachment) (bool, error) {
	_, err := actors.Ask(ctx, t.Root, t.Supervisor(), &mayGoOn{attachment: a.Name})
	if !errors.Is(err, pools.ErrInUse) {
		return err == nil, err
	}
	t.warn(a, "AttachFailed", err)
	return false, t.writeStatus(ctx, a, func() {
		a.Status.State, a.Status.Message = v1alpha1.AttachmentFailed, err.Error()+"; delete this PoolAttachment"
	})
}
