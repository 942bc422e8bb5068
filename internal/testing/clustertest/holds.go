package clustertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// Grace is how long a volume of these nodes is kept after its release.
const Grace = 10 * time.Minute

// LookAll returns all nodes.
func (r registry) LookAll(ctx context.Context) fleet.Look {
	return r.Look(ctx, volume.OtherNamespaces)
}

// Grep searches the node's volumes.
func (f fleetNode) Grep(ctx context.Context, by fleet.Reader, q api.GrepQuery) (*api.GrepStream[api.Volume], error) {
	return f.n.client.OnBehalf(by.User, by.AuditID).Grep(ctx, q)
}

// Gone asks the node.
func (f fleetNode) Gone(ctx context.Context, by fleet.Reader, q api.GoneQuery) (api.GoneList, error) {
	ctx, cancel := patiently(ctx)
	defer cancel()
	return f.n.client.OnBehalf(by.User, by.AuditID).Gone(ctx, q)
}

// hold changes what a person has decided about a volume.
func (v volumes) hold(id volume.ID, kind volume.HoldKind, until time.Time, by, why string) (volume.Description, error) {
	v.n.mu.Lock()
	defer v.n.mu.Unlock()
	d, ok := v.n.all[id]
	if !ok {
		return d, fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	d.Record.Hold = volume.Hold{}
	if kind != volume.NoHold {
		d.Record.Hold = volume.Hold{Kind: kind, For: until.Sub(d.Record.Unpublished), By: by, Why: why}
		if kind == volume.Released || d.Deadline.Before(until) {
			d.Deadline = until
		}
	}
	v.n.all[id] = d
	return d, d.Record.Hold.Check()
}

func (v volumes) Pin(_ context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	return v.hold(id, volume.Pinned, until, by, why)
}

func (v volumes) Unpin(_ context.Context, id volume.ID, _ string) (volume.Description, error) {
	return v.hold(id, volume.NoHold, time.Time{}, "", "")
}

func (v volumes) Release(_ context.Context, id volume.ID, by, why string) (volume.Description, error) {
	return v.hold(id, volume.Released, time.Now().Add(Grace), by, why)
}

func (v volumes) Purge(_ context.Context, id volume.ID, by, why string) error {
	v.n.mu.Lock()
	defer v.n.mu.Unlock()
	d, ok := v.n.all[id]
	if !ok {
		return fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	v.n.bury(d, volume.Purged, by, why)
	return nil
}

// bury makes a volume one that is gone.
func (n *Node) bury(d volume.Description, reason volume.Reason, by, why string) {
	delete(n.all, d.Record.ID)
	n.gone = append(n.gone, volume.Tombstone{
		Number: uint64(len(n.gone) + 1), Record: d.Record, Size: d.Size,
		Gone: time.Now(), Kept: time.Since(d.Record.Unpublished).Round(time.Second),
		Reason: reason, By: by, Why: why,
	})
}

func (v volumes) Gone(_ context.Context, s volume.GoneSelection) (volume.GonePage, error) {
	v.n.mu.Lock()
	defer v.n.mu.Unlock()
	var page volume.GonePage
	for _, t := range slices.Backward(v.n.gone) {
		if (s.Below == 0 || t.Number < s.Below) && (s.ID == "" || s.ID == t.Record.ID) && s.Selects(t.Record) {
			page.Tombstones = append(page.Tombstones, t)
		}
	}
	if len(page.Tombstones) > s.Limit {
		page.Tombstones = page.Tombstones[:s.Limit]
		page.Next = page.Tombstones[s.Limit-1].Number
	}
	return page, nil
}

// Evict lets a volume go early, because the disk runs out of bytes.
func (n *Node) Evict(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bury(n.all[id(number)], volume.ForBytes, "", "")
}
