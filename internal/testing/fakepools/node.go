package fakepools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
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
// Disks of one UUID have one key, unless another one is given: each is a copy of the other.
func NewDisk(p local.Pool) *Disk {
	if p.Total == 0 {
		p.Total = 100 << 30
	}
	if p.Free == 0 {
		p.Free = p.Total
	}
	if p.Key == "" {
		p.Key = local.Key("KEYOF" + strings.NewReplacer("-", "", "0", "A", "1", "B", "8", "C", "9", "D").Replace(strings.ToUpper(p.UUID)))
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

// Method returns a fault for [Node.Fail] and [Node.Lose]: an error of all calls of some methods.
func Method(err error, methods ...string) func(Call) error {
	return func(c Call) error {
		if slices.Contains(methods, c.Method) {
			return fmt.Errorf("%s %s: %w", strings.ToLower(c.Method), c.Name, err)
		}
		return nil
	}
}
