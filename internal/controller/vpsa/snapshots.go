package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/katbox/katbox/internal/controller/array"
)

// Snapshot asks for one snapshot.
func (c *client) Snapshot(ctx context.Context, id string) (array.Snapshot, error) {
	var found *snapshot
	err := c.get(ctx, call{pattern: "snapshots/{id}", id: id, fields: map[string]field{"snapshot": one(&found)}})
	if err != nil {
		return array.Snapshot{}, err
	}
	if found == nil || found.ID == "" {
		return array.Snapshot{}, fmt.Errorf("snapshot %s of the array %s: %w", id, c.endpoint, array.ErrNotFound)
	}
	return found.words(), nil
}

// taking begins the doubt about a snapshot; its group and its name follow.
func (c *client) taking() string { return "take a snapshot on " + c.endpoint + ": " }

// CreateSnapshot takes a snapshot of the volume's consistency group, which holds the volume alone.
func (c *client) CreateSnapshot(ctx context.Context, s array.NewSnapshot) (array.Snapshot, error) {
	of, err := c.Volume(ctx, s.VolumeID)
	if err != nil {
		return array.Snapshot{}, err
	}
	group := of.Group
	l := allSnapshots
	l.q = call{pattern: "consistency_groups/{id}/snapshots", id: group}
	var taken array.Snapshot
	done := func(ctx context.Context) (bool, error) {
		all, err := l.all(ctx, c)
		if err != nil {
			return false, err
		}
		var found []array.Snapshot
		for _, one := range all {
			if string(one.Name) == s.Name {
				found = append(found, one.words())
			}
		}
		one, err := only(c, "snapshot", s.Name, found, func(s array.Snapshot) string { return s.ID })
		if errors.Is(err, array.ErrNotFound) {
			return false, nil
		}
		taken = one
		return err == nil, err
	}
	is, err := done(ctx)
	if err == nil && !is {
		err = c.make(ctx, c.taking()+group+"/"+s.Name, call{
			method: http.MethodPost, pattern: "consistency_groups/{id}/snapshots", id: group, limit: min(shortTime, c.timeout),
			body: map[string]any{"display_name": s.Name},
		}, done)
	}
	if err != nil {
		return array.Snapshot{}, err
	}
	// What the list of a group leaves out.
	if taken.VolumeID == "" {
		taken.VolumeID = s.VolumeID
	}
	if taken.Size == 0 {
		taken.Size = of.Size
	}
	return taken, nil
}

// DeleteSnapshot deletes a snapshot.
func (c *client) DeleteSnapshot(ctx context.Context, id string) error {
	done := func(ctx context.Context) (bool, error) {
		_, err := c.Snapshot(ctx, id)
		if errors.Is(err, array.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	if is, err := done(ctx); is || err != nil {
		return err
	}
	err := c.change(ctx, call{method: http.MethodDelete, pattern: "snapshots/{id}", id: id})
	if err == nil {
		return nil
	}
	return c.settle(ctx, err, done)
}
