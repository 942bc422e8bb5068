package main

import (
	"context"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/kubelet"
	"github.com/katbox/katbox/soak/internal/pause"
	"github.com/katbox/katbox/soak/story"
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
	if write && !r.contain(ctx, v, p, true) || !r.contain(ctx, v, p, false) {
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
		r.found.add(Once, v, sized(story.Grow, v.size+gib))
		size, err := r.provisioner.expand(ctx, v, p.Volumes[0].Story.Target, p.Volumes[0].StagingPath(r.node.root, driverName), v.size+gib)
		if r.failed(ctx, v, "expand", err) {
			return snapshot, false
		}
		r.mu.Lock()
		v.size += gib
		r.expanded++
		r.mu.Unlock()
		r.found.add(Once, v, sized(story.Grown, size))
	}
	if what.second {
		if _, ok := r.play(ctx, v, round{length: what.length / 2}, false); !ok {
			return snapshot, false
		}
	}
	if pause.For(ctx, what.length) != nil {
		return snapshot, false
	}
	return snapshot, r.contain(ctx, v, p, false)
}

// contain has a container write the volume's content, or look whether it is there.
func (r *run) contain(ctx context.Context, v *volume, p *kubelet.Pod, write bool) bool {
	d := deed{Write: write, Path: p.Volumes[0].Story.Target, Block: v.kind == block, Content: v.content, Outside: r.outside}
	if v.size > gib {
		d.Bytes = v.size
	}
	e, failed := story.Event{What: story.Whole}, story.Partial
	if write {
		e, failed = story.Event{What: story.Wrote, N: 1}, story.Failed
	}
	err := d.run(ctx)
	if err != nil {
		e = story.Event{What: failed, Text: err.Error()}
	}
	return ctx.Err() == nil && r.found.add(history.PublishedData, v, e)
}
