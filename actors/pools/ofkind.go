package pools

import (
	"context"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// OfKind is the controller for one kind of pools: what is in others does not exist here.
type OfKind struct {
	*Controller
	kind pools.Kind
}

// OfKind returns the controller for one kind of pools.
func (c *Controller) OfKind(kind pools.Kind) *OfKind { return &OfKind{c, kind} }

// other reports whether a volume is in a pool of another kind. What is not known may be of this one.
func (k *OfKind) other(ctx context.Context, id string) bool {
	v, err := k.Controller.Volume(ctx, id)
	return err == nil && v.Protocol.Kind() != k.kind
}

// otherSnapshot is other for a snapshot.
func (k *OfKind) otherSnapshot(ctx context.Context, id string) bool {
	for _, kind := range []pools.Kind{pools.KindArray, pools.KindLocal} {
		if kind == k.kind {
			continue
		}
		got, err := k.snapshots(ctx, kind, pools.SnapshotSelection{ID: id}, pools.Page{Limit: 1})
		if err == nil && len(got.Snapshots) > 0 {
			return true
		}
	}
	return false
}

// noVolume answers for a volume of another kind.
func noVolume(id string) error {
	return fmt.Errorf("%w: there is no volume %s of this driver", volume.ErrNotFound, id)
}

// CreateVolume makes a volume in a pool of the kind.
func (k *OfKind) CreateVolume(ctx context.Context, v pools.NewVolume) (pools.Volume, error) {
	v.Kind = k.kind
	switch from := v.Source; {
	case from.Volume != "" && k.other(ctx, from.Volume):
		return pools.Volume{}, noVolume(from.Volume)
	case from.Snapshot != "" && k.otherSnapshot(ctx, from.Snapshot):
		return pools.Volume{}, fmt.Errorf("%w: there is no snapshot %s of this driver", volume.ErrNotFound, from.Snapshot)
	}
	return k.Controller.CreateVolume(ctx, v)
}

// DeleteVolume deletes a volume. One of another kind does not exist, and stays as it is.
func (k *OfKind) DeleteVolume(ctx context.Context, id string) error {
	if k.other(ctx, id) {
		return nil
	}
	return k.Controller.DeleteVolume(ctx, id)
}

// GrowVolume makes a volume larger.
func (k *OfKind) GrowVolume(ctx context.Context, id string, required, limit int64) (pools.Volume, error) {
	if k.other(ctx, id) {
		return pools.Volume{}, noVolume(id)
	}
	return k.Controller.GrowVolume(ctx, id, required, limit)
}

// Attach attaches a volume to a node.
func (k *OfKind) Attach(ctx context.Context, a pools.NewAttachment) (pools.Attachment, error) {
	if k.other(ctx, a.Volume) {
		return pools.Attachment{}, noVolume(a.Volume)
	}
	return k.Controller.Attach(ctx, a)
}

// CreateSnapshot takes a snapshot of a volume.
func (k *OfKind) CreateSnapshot(ctx context.Context, name, id string) (pools.Snapshot, error) {
	if k.other(ctx, id) {
		return pools.Snapshot{}, noVolume(id)
	}
	return k.Controller.CreateSnapshot(ctx, name, id)
}

// DeleteSnapshot deletes a snapshot. One of another kind does not exist, and stays as it is.
func (k *OfKind) DeleteSnapshot(ctx context.Context, id string) error {
	if k.otherSnapshot(ctx, id) {
		return nil
	}
	return k.Controller.DeleteSnapshot(ctx, id)
}

// Volume returns a volume.
func (k *OfKind) Volume(ctx context.Context, id string) (pools.Volume, error) {
	v, err := k.Controller.Volume(ctx, id)
	if err == nil && v.Protocol.Kind() != k.kind {
		return pools.Volume{}, noVolume(id)
	}
	return v, err
}

// Volumes returns a page of the volumes of the kind.
func (k *OfKind) Volumes(ctx context.Context, page pools.Page) ([]pools.Volume, bool, error) {
	got, err := actors.Ask(ctx, k.Root, k.Supervisor(), &poolmessages.ListVolumes{Kind: k.kind, Page: page})
	return got.Volumes, got.More, err
}

// Snapshots returns a page of the snapshots of the kind.
func (k *OfKind) Snapshots(ctx context.Context, which pools.SnapshotSelection, page pools.Page) ([]pools.Snapshot, bool, error) {
	got, err := k.snapshots(ctx, k.kind, which, page)
	return got.Snapshots, got.More, err
}

func (k *OfKind) snapshots(
	ctx context.Context, kind pools.Kind, which pools.SnapshotSelection, page pools.Page,
) (poolmessages.SnapshotPage, error) {
	return actors.Ask(ctx, k.Root, k.Supervisor(), &poolmessages.ListSnapshots{Kind: kind, Selection: which, Page: page})
}

// Capacity returns what a class has room for in pools of the kind.
func (k *OfKind) Capacity(ctx context.Context, want pools.Wanted) (pools.Capacity, error) {
	want.Kind = k.kind
	return k.Controller.Capacity(ctx, want)
}
