package ephemeral

import (
	"context"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// Own notes whose a volume is, as a gateway said of its pod. A retained volume has that durably when
// Own returns. A volume that is published keeps it in memory and writes it with its next change, so
// that it costs no sync; after a crash its owner has to be asked for again.
//
// What was Confirmed stays. The error is a [volume.ErrInvalid] that names the field, a
// [volume.ErrNotFound] when no such volume of that pod is known, or why the record could not be
// written.
func (n *Node) Own(ctx context.Context, id volume.ID, pod volume.PodUID, owner volume.Owner) error {
	if owner.Verdict == volume.Unasked {
		return volume.Invalid("owner.verdict", "is missing")
	}
	if err := owner.Check(); err != nil {
		return err
	}
	_, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.OwnVolume{Routing: n.routing(ctx, id), Pod: pod, Owner: owner})
	return err
}

// Holdings returns how many retained volumes there are of each namespace, in no order. It costs
// nothing to call it again while nothing has changed, and returns the same slice then. The slice is
// shared: the caller does not change it.
func (n *Node) Holdings(ctx context.Context) ([]volume.Holding, error) {
	last := n.holdings.Load()
	if last == nil {
		last = &messages.Holdings{}
	}
	now, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.CountHoldings{Version: last.Version})
	switch {
	case err != nil:
		return nil, err
	case now.Version == last.Version:
		return last.All, nil
	}
	n.holdings.Store(&now)
	return now.All, nil
}
