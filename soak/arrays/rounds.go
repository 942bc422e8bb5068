package main

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
)

// round is what happens to a volume while pods use it.
type round struct {
	expand, snapshot bool
	// elsewhere: another node wants it too. second: a second pod on the node.
	elsewhere, second bool
	length            time.Duration
}

// play plays a round, in which the first pod writes or compares. It returns a snapshot, if one was made.
func (r *run) play(ctx context.Context, v *volume, what round, write bool) (snapshot string, ok bool) {
	p := r.node.pod(v)
	defer func() { ok = r.node.finish(ctx, p) && ok }()
	if !r.node.await(ctx, p, false) {
		return "", false
	}
	if write {
		if err := r.deed(v, p, true).run(ctx); err != nil {
			if ctx.Err() == nil {
				r.found.broken(history.PublishedData, p.Volumes[0].Story, "volume %s (%s): writing: %v", v.id, v.kind, err)
			}
			return "", false
		}
	}
	if !r.compare(ctx, v, p) {
		return "", false
	}
	if what.snapshot {
		id, err := r.provisioner.snapshot(ctx, v, v.name+"-snapshot")
		if r.failed(ctx, v, "snapshot", err) {
			return "", false
		}
		snapshot = id
	}
	if what.elsewhere && !r.elsewhere(ctx, v) {
		return snapshot, false
	}
	if what.expand {
		err := r.provisioner.expand(ctx, v, p.Volumes[0].Story.Target, p.Volumes[0].StagingPath(r.node.root, driverName), v.size+1)
		if r.failed(ctx, v, "expand", err) {
			return snapshot, false
		}
		r.mu.Lock()
		v.size++
		r.expanded++
		r.mu.Unlock()
	}
	if what.second {
		if _, ok := r.play(ctx, v, round{length: what.length / 2}, false); !ok {
			return snapshot, false
		}
	}
	if !sleep(ctx, what.length) {
		return snapshot, false
	}
	return snapshot, r.compare(ctx, v, p)
}

// compare looks whether a volume has its content.
func (r *run) compare(ctx context.Context, v *volume, p *kubelet.Pod) bool {
	err := r.deed(v, p, false).run(ctx)
	if err != nil && ctx.Err() == nil {
		r.found.broken(history.PublishedData, p.Volumes[0].Story, "volume %s (%s): %v", v.id, v.kind, err)
	}
	return err == nil
}

func (r *run) deed(v *volume, p *kubelet.Pod, write bool) deed {
	d := deed{Write: write, Path: p.Volumes[0].Story.Target, Block: v.kind == block, Content: v.content, Outside: r.outside}
	if v.size > 1 {
		d.Bytes = v.size * gib
	}
	return d
}
