package fakepools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// Pools describes all pools of the node.
func (n *Node) Pools(ctx context.Context) ([]local.Pool, error) {
	return do(ctx, n, Call{Method: "Pools"}, func(*Disk) (all []local.Pool, err error) {
		for _, uuid := range slices.Sorted(maps.Keys(n.disks)) {
			all = append(all, n.disks[uuid].describe())
		}
		return all, nil
	})
}

func (d *Disk) describe() local.Pool {
	p := d.pool
	for _, v := range d.volumes {
		p.Provisioned += v.Size
	}
	return p
}

// Volumes returns a page of the volumes of a pool.
func (n *Node) Volumes(ctx context.Context, pool, after string, limit int) ([]local.Volume, error) {
	return do(ctx, n, Call{"Volumes", pool, after}, func(d *Disk) (all []local.Volume, err error) {
		for _, v := range page(d.volumes, after, limit) {
			all = append(all, d.view(v))
		}
		return all, nil
	})
}

// view is a volume with what follows from its snapshots.
func (d *Disk) view(v local.Volume) local.Volume {
	v.HasSnapshots = false
	for _, s := range d.snapshots {
		v.HasSnapshots = v.HasSnapshots || s.Volume == v.Name
	}
	return v
}

// Volume returns a volume.
func (n *Node) Volume(ctx context.Context, pool, name string) (local.Volume, error) {
	return do(ctx, n, Call{"Volume", pool, name}, func(d *Disk) (local.Volume, error) { return d.volume(name) })
}

func (d *Disk) volume(name string) (local.Volume, error) {
	v, ok := d.volumes[name]
	if !ok {
		return v, fmt.Errorf("%w: volume %s in pool %s", volume.ErrNotFound, name, d.pool.UUID)
	}
	return d.view(v), nil
}

// CreateVolume makes a volume. One that is slow is not ready when the call returns.
func (n *Node) CreateVolume(ctx context.Context, pool string, v local.NewVolume) (local.Volume, error) {
	return do(ctx, n, Call{"CreateVolume", pool, v.Name}, func(d *Disk) (local.Volume, error) {
		if have, err := d.volume(v.Name); err == nil {
			return have, nil
		}
		switch {
		case !pools.IsID(v.Name) || v.Size <= 0:
			return local.Volume{}, volume.Invalid("volume", "has no name or no size")
		case v.Block && !d.pool.Block:
			return local.Volume{}, volume.Invalid("block", "cannot be: the pool has directories")
		case v.Source != (local.Source{}) && !d.pool.Copies:
			return local.Volume{}, volume.Invalid("source", "cannot be copied: the pool has no copies")
		case d.describe().Provisioned+v.Size > d.pool.Total:
			return local.Volume{}, fmt.Errorf("%w: pool %s has %d bytes", volume.ErrNoSpace, pool, d.pool.Total)
		}
		if err := d.hasSource(v.Source); err != nil {
			return local.Volume{}, err
		}
		d.volumes[v.Name] = local.Volume{
			Name: v.Name, Pool: pool, Size: v.Size, Block: v.Block, FSType: v.FSType, Comment: v.Comment, Source: v.Source,
			Ready: !d.slow, Created: time.Now().UTC().Truncate(time.Second),
		}
		return d.volumes[v.Name], nil
	})
}

func (d *Disk) hasSource(from local.Source) error {
	if from.Volume != "" {
		_, err := d.volume(from.Volume)
		return err
	}
	if _, ok := d.snapshots[from.Snapshot]; from.Snapshot != "" && !ok {
		return fmt.Errorf("%w: snapshot %s in pool %s", volume.ErrNotFound, from.Snapshot, d.pool.UUID)
	}
	return nil
}

// GrowVolume makes a volume larger.
func (n *Node) GrowVolume(ctx context.Context, pool, name string, bytes int64) (local.Volume, error) {
	return do(ctx, n, Call{"GrowVolume", pool, name}, func(d *Disk) (local.Volume, error) {
		v, err := d.volume(name)
		if err != nil {
			return v, err
		}
		if bytes > v.Size && d.describe().Provisioned+bytes-v.Size > d.pool.Total {
			return v, fmt.Errorf("%w: pool %s has %d bytes", volume.ErrNoSpace, pool, d.pool.Total)
		}
		v.Size = max(v.Size, bytes)
		d.volumes[name] = v
		return d.view(v), nil
	})
}

// CommentVolume changes a volume's comment.
func (n *Node) CommentVolume(ctx context.Context, pool, name, comment string) (local.Volume, error) {
	return do(ctx, n, Call{"CommentVolume", pool, name}, func(d *Disk) (local.Volume, error) {
		v, err := d.volume(name)
		if err != nil {
			return v, err
		}
		if v.InUse && pools.ParseComment(comment).Retained != nil {
			return v, fmt.Errorf("%w: volume %s is staged", pools.ErrInUse, name)
		}
		v.Comment = comment
		d.volumes[name] = v
		return v, nil
	})
}

// DeleteVolume deletes a volume.
func (n *Node) DeleteVolume(ctx context.Context, pool, name string) error {
	_, err := do(ctx, n, Call{"DeleteVolume", pool, name}, func(d *Disk) (struct{}, error) {
		v, err := d.volume(name)
		switch {
		case err != nil:
			return struct{}{}, nil
		case v.InUse:
			return struct{}{}, fmt.Errorf("%w: volume %s is staged", pools.ErrInUse, name)
		case v.HasSnapshots:
			return struct{}{}, fmt.Errorf("%w: volume %s has snapshots", pools.ErrInUse, name)
		}
		delete(d.volumes, name)
		return struct{}{}, nil
	})
	return err
}

// Snapshots returns a page of the snapshots of a pool.
func (n *Node) Snapshots(ctx context.Context, pool, after string, limit int) ([]local.Snapshot, error) {
	return do(ctx, n, Call{"Snapshots", pool, after}, func(d *Disk) ([]local.Snapshot, error) {
		return page(d.snapshots, after, limit), nil
	})
}

// Snapshot returns a snapshot.
func (n *Node) Snapshot(ctx context.Context, pool, name string) (local.Snapshot, error) {
	return do(ctx, n, Call{"Snapshot", pool, name}, func(d *Disk) (local.Snapshot, error) {
		s, ok := d.snapshots[name]
		if !ok {
			return s, fmt.Errorf("%w: snapshot %s in pool %s", volume.ErrNotFound, name, pool)
		}
		return s, nil
	})
}

// CreateSnapshot takes a snapshot.
func (n *Node) CreateSnapshot(ctx context.Context, pool, name, of string) (local.Snapshot, error) {
	return do(ctx, n, Call{"CreateSnapshot", pool, name}, func(d *Disk) (local.Snapshot, error) {
		if s, ok := d.snapshots[name]; ok {
			return s, nil
		}
		v, err := d.volume(of)
		if err != nil {
			return local.Snapshot{}, err
		}
		if !d.pool.Copies {
			return local.Snapshot{}, volume.Invalid("snapshot", "cannot be taken: the pool has no copies")
		}
		s := local.Snapshot{Name: name, Pool: pool, Volume: of, Size: v.Size, Created: time.Now().UTC().Truncate(time.Second), Ready: true}
		d.snapshots[name] = s
		return s, nil
	})
}

// DeleteSnapshot deletes a snapshot.
func (n *Node) DeleteSnapshot(ctx context.Context, pool, name string) error {
	_, err := do(ctx, n, Call{"DeleteSnapshot", pool, name}, func(d *Disk) (struct{}, error) {
		delete(d.snapshots, name)
		return struct{}{}, nil
	})
	return err
}
