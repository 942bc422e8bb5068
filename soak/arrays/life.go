package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// life is that of a volume with a number, from its creation to its deletion. It ends early when something
// is broken.
func (r *run) life(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(r.o.seed, uint64(number)))
	// All is drawn at once: a life that ends early does not change the others.
	kind := r.o.kinds[number%len(r.o.kinds)]
	v := newVolume(fmt.Sprintf("pvc-50a4-%06d", number), kind, workload.Content{
		Marker: fmt.Sprintf("%016x", random.Uint64()), Seed: random.Uint64(), Files: 1 + random.IntN(10), Bytes: 300_000,
		Names: random.IntN(4) == 0, Links: random.IntN(4) == 0,
	})
	first := round{
		expand: random.IntN(3) == 0, snapshot: random.IntN(3) == 0, elsewhere: random.IntN(4) == 0,
		second: v.kind != block && random.IntN(3) == 0, length: time.Duration(random.IntN(4000)) * time.Millisecond,
	}
	again := round{length: time.Duration(random.IntN(1000)) * time.Millisecond}
	cold := random.IntN(2) == 0 || r.o.meddle != nil
	r.counted(v.kind)

	if !r.create(ctx, v, "") {
		return
	}
	snapshot, ok := r.play(ctx, v, first, true)
	if !ok || cold && !r.rest(ctx, v) {
		return
	}
	if _, ok = r.play(ctx, v, again, false); !ok || snapshot != "" && !r.restore(ctx, v, snapshot) {
		return
	}
	r.end(ctx, v)
}

// create makes a volume, of a snapshot if that has a name.
func (r *run) create(ctx context.Context, v *volume, snapshot string) bool {
	e := sized(story.Create, v.size)
	e.Text = snapshot
	r.found.add(Once, v, e)
	size, err := r.provisioner.create(ctx, v, snapshot)
	if r.failed(ctx, v, "create", err) {
		return false
	}
	r.mu.Lock()
	r.volumes[v.id] = v
	r.mu.Unlock()
	return r.found.add(Once, v, sized(story.Created, size))
}

// rest waits until a volume is detached.
func (r *run) rest(ctx context.Context, v *volume) bool {
	if !r.node.detached(ctx, v) {
		return false
	}
	if r.o.meddle == nil {
		return true
	}
	id, err := r.onArray(ctx, v)
	if err == nil {
		err = r.o.meddle(r.array.dir, id)
	}
	return !r.failed(ctx, v, "meddle", err)
}

// restore makes a volume of a snapshot, and looks what is in it.
func (r *run) restore(ctx context.Context, v *volume, snapshot string) bool {
	copied := newVolume(v.name+"-restored", v.kind, v.content)
	copied.shared, copied.size = v.shared, v.size
	if !r.create(ctx, copied, snapshot) {
		return false
	}
	if _, ok := r.play(ctx, copied, round{}, false); !ok {
		return false
	}
	if r.failed(ctx, v, "delete a snapshot of", r.provisioner.deleteSnapshot(ctx, snapshot)) {
		return false
	}
	return r.end(ctx, copied)
}

// end deletes a volume that no pod uses any more.
func (r *run) end(ctx context.Context, v *volume) bool {
	if !r.node.detached(ctx, v) || !r.listed(ctx, v) {
		return false
	}
	r.found.add(Once, v, story.Event{What: story.Delete})
	if r.failed(ctx, v, "delete", r.provisioner.delete(ctx, v.id)) {
		return false
	}
	r.mu.Lock()
	delete(r.volumes, v.id)
	r.lived++
	r.mu.Unlock()
	return r.found.add(Once, v, story.Event{What: story.Deleted})
}

// listed looks for a volume on the array.
func (r *run) listed(ctx context.Context, v *volume) bool {
	id, err := r.onArray(ctx, v)
	has, stateErr := r.array.state(ctx)
	if r.failed(ctx, v, "look for", errors.Join(err, stateErr)) {
		return false
	}
	e := story.Event{What: story.Unknown}
	for _, one := range has.Volumes {
		if one.ID == id {
			e = sized(story.Listed, one.Size*gib)
		}
	}
	return r.found.add(Once, v, e)
}

// failed notes that a call for a volume failed for good.
func (r *run) failed(ctx context.Context, v *volume, what string, err error) bool {
	if err != nil && ctx.Err() == nil {
		r.found.add(history.AnyOrder, v, story.Event{What: story.Failed, Text: fmt.Sprintf("%s: %v", what, err)})
	}
	return err != nil
}

// elsewhere attaches a volume that is in use to another node.
func (r *run) elsewhere(ctx context.Context, v *volume) bool {
	attached, detached := r.provisioner.attachElsewhere(ctx, v)
	switch code := status.Code(attached); {
	case !v.shared && attached == nil:
		return r.found.add(Once, v, story.Event{What: story.Failed, Text: "ReadWriteOnce, and attached to a second node"})
	case v.shared || code != codes.FailedPrecondition:
		if r.failed(ctx, v, "attach to a second node", attached) {
			return false
		}
	}
	return !r.failed(ctx, v, "detach from another node", detached)
}
