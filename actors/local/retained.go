package local

import (
	"context"
	"slices"
	"sync"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	localmessages "github.com/katbox/katbox/messages/local"
)

// kindClaim is the kind of the owner of a volume that a claim had.
const kindClaim = "PersistentVolumeClaim"

// keptOf describes a volume that is kept without a claim, by its record; nil for any other. Its comment has whose it
// was. Where it does not name the namespace's UID, only readers see it who may see all volumes.
func keptOf(r local.Record) *volume.Description {
	if r.IsSnapshot() {
		return nil
	}
	comment := pools.ParseComment(r.Comment)
	if comment.Retained == nil {
		return nil
	}
	claim := comment.For()
	d := &volume.Description{
		Record: volume.Record{
			ID: volume.ID(r.Name), Namespace: claim.Namespace, Phase: volume.Retained, Published: r.Created,
			Unpublished: comment.Retained.Since, Lifespan: comment.Retained.Until.Sub(comment.Retained.Since),
			Owner: volume.Owner{
				Verdict: volume.Confirmed, NamespaceUID: comment.NamespaceUID, Kind: kindClaim, Name: claim.Name, UID: comment.ClaimUID,
			},
		},
		Claim: claim.Name, Size: volume.Size{Bytes: r.Size}, Deadline: comment.Retained.Until,
	}
	if claim.Name == "" || d.Record.Owner.Check() != nil {
		d.Record.Owner = volume.Owner{Verdict: volume.Denied}
	}
	return d
}

// retained returns the volumes that are kept without a claim, the one that was retained last first. Those whose disk
// is away are there as they were.
func (k *keeper) retained() (all []volume.Description) {
	if len(k.pools) == 1 {
		return k.pools[0].retained()
	}
	for _, p := range k.pools {
		all = append(all, p.retained()...)
	}
	slices.SortFunc(all, newestFirst)
	return all
}

// Retained describes the volumes that are kept without a claim, the one that was retained last first. The caller does
// not change what it gets.
func (n *Node) Retained(ctx context.Context) ([]volume.Description, error) {
	return actors.Ask(ctx, n.Root, n.env.keeper, &localmessages.RetainedLocal{})
}

// Read begins to read the files of a volume that is kept without a claim. The error is a [volume.ErrNotFound], a
// [volume.ErrNotRetained] when a claim has it, a [volume.ErrGone] when it is being deleted, a [volume.ErrUnavailable]
// when its disk is away or too many images are read, or a [volume.ErrInvalid] when it cannot be read.
func (n *Node) Read(ctx context.Context, id volume.ID) (*files.Reading, error) {
	name := string(id)
	if err := checkName(name); err != nil {
		return nil, err
	}
	begin := &localmessages.ReadLocal{Name: name}
	lease, err := actors.Ask(ctx, n.Root, n.env.keeper, begin)
	forget := func() { n.Root.Send(n.env.keeper, &localmessages.EndReadLocal{Begun: begin}) }
	if err != nil {
		forget() // the answer may come yet
		return nil, err
	}
	end := func() {
		lease.Release() // also where the keeper has stopped
		forget()
	}
	opened, err := actors.Find(n.System, func() (*files.Tree, error) { return n.open(ctx, lease, name) })
	if err != nil {
		end()
		return nil, err
	}
	select {
	case found := <-opened:
		if found.Err != nil {
			end()
			return nil, found.Err
		}
		return &files.Reading{
			Volume: lease.Description, Tree: found.Value, Lost: lease.Lost,
			Close: sync.OnceFunc(func() {
				found.Value.Close()
				end()
			}),
		}, nil
	case <-ctx.Done():
		go func() { // its disk may hang
			if found := <-opened; found.Err == nil {
				found.Value.Close()
			}
			end()
		}()
		return nil, ctx.Err()
	}
}

// open opens the volume that a lease is for. The record is read once more: it has the last word.
func (n *Node) open(ctx context.Context, lease localmessages.LocalLease, name string) (*files.Tree, error) {
	r, err := lease.Load(name)
	switch {
	case isNotFound(err):
		return nil, problemf(volume.ErrGone, "volume %s was deleted", name)
	case err != nil:
		return nil, because(volume.ErrUnavailable, err, "read the record of %s", name)
	case r.State != local.Ready || keptOf(r) == nil:
		return nil, problemf(volume.ErrNotRetained, "volume %s has a claim", name)
	}
	tree, err := lease.Open(ctx, r)
	if lost := context.Cause(lease.Lost); lost != nil {
		if err == nil {
			tree.Close()
		}
		return nil, lost
	}
	return tree, err
}
