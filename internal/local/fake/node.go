package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/local"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/volume"
)

// Node is a node with pools on its disks. The zero value has none.
type Node struct {
	mu    sync.Mutex
	disks map[string]*Disk
	calls map[string]int
	fails func(Call) error
	// loses: what is asked for is done, and the answer is an error.
	loses func(Call) error
	holds func(context.Context, Call)
}

var _ local.Pools = (*Node)(nil)

// Call is one call of a method of [local.Pools].
type Call struct {
	// Method is such as "CreateVolume"; Pool the UUID, Name the volume's or the snapshot's, where it has them.
	Method, Pool, Name string
}

// Disk is a pool's disk, which may move from one node to another.
type Disk struct {
	pool      local.Pool
	volumes   map[string]local.Volume
	snapshots map[string]local.Snapshot
	away      bool
	// slow: new volumes are not ready yet.
	slow bool
}

// NewDisk returns an empty disk. Its UUID is required; Total is 100 GiB where nothing is said, and all of it is free.
func NewDisk(p local.Pool) *Disk {
	if p.Total == 0 {
		p.Total = 100 << 30
	}
	if p.Free == 0 {
		p.Free = p.Total
	}
	if p.Path == "" {
		p.Path = "/mnt/" + p.UUID[:min(8, len(p.UUID))]
	}
	if p.Backend == "" {
		p.Backend = local.ProjectQuota
	}
	if p.FSType == "" {
		p.FSType = "xfs"
	}
	return &Disk{pool: p, volumes: map[string]local.Volume{}, snapshots: map[string]local.Snapshot{}}
}

// Add gives the node a disk.
func (n *Node) Add(d *Disk) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.disks == nil {
		n.disks = map[string]*Disk{}
	}
	n.disks[d.pool.UUID] = d
}

// Remove takes a disk out of the node, with all that is on it.
func (n *Node) Remove(uuid string) *Disk {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disks[uuid]
	delete(n.disks, uuid)
	return d
}

// Change changes what the node says of a pool, such as its size; a pool whose Failed is set is away.
func (n *Node) Change(uuid string, change func(*local.Pool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disks[uuid]
	change(&d.pool)
	d.away = d.pool.Failed != ""
}

// Fail lets calls fail, and do nothing, for which f returns an error; nil ends that.
func (n *Node) Fail(f func(Call) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = f
}

// Lose lets calls do what they are asked, and answer with the error that f returns; nil ends that.
func (n *Node) Lose(f func(Call) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loses = f
}

// Hold calls f before each call; it may block until its context ends. nil ends that.
func (n *Node) Hold(f func(context.Context, Call)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holds = f
}

// Slow lets new volumes of a pool not be ready before [Node.Finish].
func (n *Node) Slow(uuid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disks[uuid].slow = true
}

// Finish makes all volumes of a pool ready, and later ones at once.
func (n *Node) Finish(uuid string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disks[uuid]
	d.slow = false
	for name, v := range d.volumes {
		v.Ready = true
		d.volumes[name] = v
	}
}

// Use says whether a volume is staged.
func (n *Node) Use(uuid, name string, inUse bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disks[uuid]
	v := d.volumes[name]
	v.InUse = inUse
	d.volumes[name] = v
}

// Put puts a volume on a disk, as if it had been there before, and Drop takes it away.
func (n *Node) Put(uuid string, v local.Volume) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v.Pool = uuid
	n.disks[uuid].volumes[v.Name] = v
}

// Drop takes a volume from a disk behind everybody's back.
func (n *Node) Drop(uuid, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.disks[uuid].volumes, name)
}

// On returns what is on a disk, sorted by name.
func (n *Node) On(uuid string) ([]local.Volume, []local.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disks[uuid]
	if d == nil {
		return nil, nil
	}
	return page(d.volumes, "", 0), page(d.snapshots, "", 0)
}

// Called returns how often a method was called.
func (n *Node) Called(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

// page returns at most limit entries that come after a name; 0 sets no limit.
func page[V any](all map[string]V, after string, limit int) (found []V) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name > after && (limit <= 0 || len(found) < limit) {
			found = append(found, all[name])
		}
	}
	return found
}

// do carries out a call with the faults that are wanted; f runs with the lock held.
func do[R any](ctx context.Context, n *Node, c Call, f func(*Disk) (R, error)) (r R, err error) {
	n.mu.Lock()
	if n.calls == nil {
		n.calls = map[string]int{}
	}
	n.calls[c.Method]++
	hold := n.holds
	n.mu.Unlock()
	if hold != nil {
		hold(ctx, c)
	}
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fails != nil {
		if err := n.fails(c); err != nil {
			return r, err
		}
	}
	d := n.disks[c.Pool]
	if c.Pool != "" {
		switch {
		case d == nil:
			return r, fmt.Errorf("%w: the node has no pool %s", volume.ErrUnavailable, c.Pool)
		case d.away:
			return r, fmt.Errorf("%w: pool %s: %s", volume.ErrUnavailable, c.Pool, d.pool.Failed)
		}
	}
	if r, err = f(d); err != nil || n.loses == nil {
		return r, err
	}
	return r, n.loses(c)
}

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

// Method returns a fault for [Node.Fail] and [Node.Lose]: an error of all calls of some methods.
func Method(err error, methods ...string) func(Call) error {
	return func(c Call) error {
		if slices.Contains(methods, c.Method) {
			return fmt.Errorf("%s %s: %w", strings.ToLower(c.Method), c.Name, err)
		}
		return nil
	}
}
