package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/persistent"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	localmessages "github.com/katbox/katbox/messages/local"
)

// Node is the front of the actors: it starts them, asks them, stops them. It is [local.Pools] for the controller.
type Node struct {
	persistent.Front
	env    *environment
	cancel context.CancelFunc
}

var _ local.Pools = (*Node)(nil)

// Start starts the actors, which look for the disks at once. It waits for none of them.
func Start(cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	system := actors.NewSystem(cfg.Log, cfg.Threads)
	env := newEnvironment(ctx, system, cfg)
	if err := system.Start(&owner{environment: env}, cfg.Metrics, nil); err != nil {
		cancel()
		return nil, err
	}
	return &Node{Front: persistent.Front{System: system}, env: env, cancel: cancel}, nil
}

// Stop lets running operations end, then ends the actors. What is staged stays. It is to be called once, after the
// last call was answered. Its error says what did not end before ctx did.
func (n *Node) Stop(ctx context.Context) error {
	err := n.StopAndCancel(ctx, n.cancel)
	closed := make(chan struct{})
	go func() {
		n.env.dirs.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("pools are still open: %w", ctx.Err()))
	}
}

// Pools describes the pools of the node that are there, or have been since the start.
func (n *Node) Pools(ctx context.Context) ([]local.Pool, error) {
	return actors.Ask(ctx, n.Root, n.env.keeper, &localmessages.LocalPools{})
}

// Places describes all directories that pools are to be in. One that was no pool since the start has no UUID.
func (n *Node) Places(ctx context.Context) ([]local.Pool, error) {
	return actors.Ask(ctx, n.Root, n.env.keeper, &localmessages.LocalPools{Missing: true})
}

// Segments returns the topology of the node: a segment for each pool whose disk is there.
func (n *Node) Segments(ctx context.Context) (map[string]string, error) {
	usable, err := actors.Ask(ctx, n.Root, n.env.keeper, &localmessages.LocalPools{Usable: true})
	segments := map[string]string{}
	for _, p := range usable {
		segments[pools.TopologyKey(p.UUID)] = pools.TopologyValue
	}
	return segments, err
}

// Volumes returns at most limit volumes of a pool by their names, those after a name.
func (n *Node) Volumes(ctx context.Context, pool, after string, limit int) ([]local.Volume, error) {
	return n.volumes(ctx, &localmessages.ListLocal{Pool: pool, After: after, Limit: limit})
}

// Volume returns a volume.
func (n *Node) Volume(ctx context.Context, pool, name string) (v local.Volume, err error) {
	if err := checkName(name); err != nil {
		return v, err
	}
	all, err := n.volumes(ctx, &localmessages.ListLocal{Pool: pool, Only: name})
	if err != nil {
		return v, err
	}
	if len(all) == 0 {
		return v, problemf(volume.ErrNotFound, "pool %s has no volume %s", pool, name)
	}
	return all[0], nil
}

func (n *Node) volumes(ctx context.Context, which *localmessages.ListLocal) ([]local.Volume, error) {
	return read(ctx, n, which, func(p localmessages.UsableLocal, names []localmessages.LocalName) (all []local.Volume, err error) {
		used, err := n.env.used(p, which.Only)
		if err != nil {
			return nil, err
		}
		err = records(p, names, func(r local.Record, name localmessages.LocalName) {
			if !r.IsSnapshot() {
				all = append(all, volumeOf(p.UUID, r, used(r.Name), name.HasSnapshots))
			}
		})
		return all, err
	})
}

// Snapshots returns at most limit snapshots of a pool by their names, those after a name.
func (n *Node) Snapshots(ctx context.Context, pool, after string, limit int) ([]local.Snapshot, error) {
	return n.snapshots(ctx, &localmessages.ListLocal{Pool: pool, After: after, Limit: limit, Snapshots: true})
}

// Snapshot returns a snapshot.
func (n *Node) Snapshot(ctx context.Context, pool, name string) (s local.Snapshot, err error) {
	if err := checkName(name); err != nil {
		return s, err
	}
	all, err := n.snapshots(ctx, &localmessages.ListLocal{Pool: pool, Only: name})
	if err != nil {
		return s, err
	}
	if len(all) == 0 {
		return s, problemf(volume.ErrNotFound, "pool %s has no snapshot %s", pool, name)
	}
	return all[0], nil
}

func (n *Node) snapshots(ctx context.Context, which *localmessages.ListLocal) ([]local.Snapshot, error) {
	return read(ctx, n, which, func(p localmessages.UsableLocal, names []localmessages.LocalName) (all []local.Snapshot, err error) {
		err = records(p, names, func(r local.Record, _ localmessages.LocalName) {
			if r.IsSnapshot() {
				all = append(all, snapshotOf(p.UUID, r))
			}
		})
		return all, err
	})
}

// records visits the records of these names that are there.
func records(p localmessages.UsableLocal, names []localmessages.LocalName, visit func(local.Record, localmessages.LocalName)) error {
	for _, name := range names {
		r, err := p.Load(name.Name)
		if isNotFound(err) {
			continue // it went meanwhile, or is not there yet
		}
		if err != nil {
			return because(volume.ErrUncertain, err, "read the record of %s", name.Name)
		}
		visit(r, name)
	}
	return nil
}

// read reads what a list names. A list with a limit is read on until there are as many: a caller takes a shorter one
// for the last.
func read[T any](
	ctx context.Context, n *Node, which *localmessages.ListLocal, do func(localmessages.UsableLocal, []localmessages.LocalName) ([]T, error),
) (all []T, err error) {
	list := &localmessages.ListLocal{Pool: which.Pool, After: which.After, Only: which.Only, Snapshots: which.Snapshots, Limit: which.Limit}
	for {
		names, err := actors.Ask(ctx, n.Root, n.env.keeper, list)
		if err != nil || len(names) == 0 {
			return all, err
		}
		p, err := n.env.use(ctx, &localmessages.UseLocal{Pool: which.Pool})
		if err != nil {
			return nil, err
		}
		page, err := inWorker(ctx, n, p, func() ([]T, error) { return do(p, names) })
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if which.Only != "" || len(names) < list.Limit || len(all) >= which.Limit {
			return all, nil
		}
		list = &localmessages.ListLocal{
			Pool: which.Pool, Snapshots: which.Snapshots, After: names[len(names)-1].Name, Limit: which.Limit - len(all),
		}
	}
}

// inWorker runs what reads in a pool, and gives the pool back after that: a disk may hang.
func inWorker[R any](ctx context.Context, n *Node, p localmessages.UsableLocal, do func() (R, error)) (value R, err error) {
	ended, err := actors.Find(n.System, func() (R, error) {
		defer p.Release()
		return do()
	})
	if err != nil {
		p.Release()
		return value, err
	}
	select {
	case found := <-ended:
		return found.Value, found.Err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// used tells which volumes are mounted: one, or any.
func (e *environment) used(p localmessages.UsableLocal, only string) (func(name string) bool, error) {
	table, err := e.table()
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, m := range table {
		if name, ok := e.nameOf(m); ok {
			named[name] = true
		}
	}
	if only != "" {
		own, err := p.Mounts(table, only)
		if err != nil {
			return nil, because(volume.ErrUncertain, err, "look where volume %s is mounted", only)
		}
		named[only] = named[only] || len(own) > 0
	}
	return func(name string) bool { return named[name] }, nil
}

// CreateVolume makes a volume, unless there is one with its name.
func (n *Node) CreateVolume(ctx context.Context, pool string, v local.NewVolume) (made local.Volume, err error) {
	err = checkNames(v.Name, v.Source.Snapshot, v.Source.Volume)
	switch {
	case err != nil:
		return made, err
	case v.Size <= 0:
		return made, volume.Invalid("size", fmt.Sprintf("%d of volume %s is no size", v.Size, v.Name))
	case v.Source.Snapshot != "" && v.Source.Volume != "":
		return made, volume.Invalid("source", "of volume "+v.Name+" is both a snapshot and a volume")
	}
	m := &localmessages.MakeLocal{Routing: messages.RoutingTo(ctx, kindVolume, v.Name), Pool: pool, New: v}
	return actors.Ask(ctx, n.Root, n.Supervisor(), m)
}

// GrowVolume makes a volume at least as large as said.
func (n *Node) GrowVolume(ctx context.Context, pool, name string, bytes int64) (grown local.Volume, err error) {
	if err := checkName(name); err != nil {
		return grown, err
	}
	return actors.Ask(ctx, n.Root, n.Supervisor(),
		&localmessages.GrowLocal{Routing: messages.RoutingTo(ctx, kindVolume, name), Pool: pool, Name: name, Bytes: bytes})
}

// CommentVolume changes a volume's comment.
func (n *Node) CommentVolume(ctx context.Context, pool, name, comment string) (v local.Volume, err error) {
	if err := checkName(name); err != nil {
		return v, err
	}
	return actors.Ask(ctx, n.Root, n.Supervisor(),
		&localmessages.CommentLocal{Routing: messages.RoutingTo(ctx, kindVolume, name), Pool: pool, Name: name, Comment: comment})
}

// DeleteVolume deletes a volume that is not in use and has no snapshots.
func (n *Node) DeleteVolume(ctx context.Context, pool, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return n.Change(ctx, &localmessages.DeleteLocal{Routing: messages.RoutingTo(ctx, kindVolume, name), Pool: pool, Name: name})
}

// CreateSnapshot takes a snapshot of a volume, unless there is one with its name.
func (n *Node) CreateSnapshot(ctx context.Context, pool, name, of string) (s local.Snapshot, err error) {
	if err := errors.Join(checkName(name), checkName(of)); err != nil {
		return s, err
	}
	return actors.Ask(ctx, n.Root, n.Supervisor(),
		&localmessages.SnapshotLocal{Routing: messages.RoutingTo(ctx, kindSnapshot, name), Pool: pool, Name: name, Of: of})
}

// DeleteSnapshot deletes a snapshot that nothing is being made of.
func (n *Node) DeleteSnapshot(ctx context.Context, pool, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	route := messages.RoutingTo(ctx, kindSnapshot, name)
	return n.Change(ctx, &localmessages.DeleteLocal{Routing: route, Pool: pool, Name: name, Snapshot: true})
}

// checkName refuses what is no name of a volume or a snapshot, before it reaches a path.
func checkName(name string) error {
	if !pools.IsID(name) {
		return volume.Invalid("name", fmt.Sprintf("%.80q is no name of a volume or a snapshot", name))
	}
	return nil
}

// checkNames is checkName for a name and for others that may be empty.
func checkNames(name string, others ...string) error {
	err := checkName(name)
	for _, other := range others {
		if other != "" {
			err = errors.Join(err, checkName(other))
		}
	}
	return err
}
