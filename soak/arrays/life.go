package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
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

	if err := r.provisioner.create(ctx, v, ""); r.failed(ctx, v, "create", err) {
		return
	}
	r.mu.Lock()
	r.volumes[v.id] = v
	r.mu.Unlock()
	snapshot, ok := r.play(ctx, v, first, true)
	if !ok || cold && !r.rest(ctx, v) {
		return
	}
	if _, ok = r.play(ctx, v, again, false); !ok || snapshot != "" && !r.restore(ctx, v, snapshot) {
		return
	}
	r.end(ctx, v)
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
	copied := v.restored()
	err := r.provisioner.create(ctx, copied, snapshot)
	if r.failed(ctx, copied, "restore a snapshot to", err) {
		return false
	}
	r.mu.Lock()
	r.volumes[copied.id] = copied
	r.mu.Unlock()
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
	if !r.node.detached(ctx, v) || r.failed(ctx, v, "size", r.sizeOnArray(ctx, v)) ||
		r.failed(ctx, v, "delete", r.provisioner.delete(ctx, v.id)) {
		return false
	}
	r.mu.Lock()
	delete(r.volumes, v.id)
	r.lived++
	r.mu.Unlock()
	return true
}

// sizeOnArray compares how large a volume is on the array with what was asked for.
func (r *run) sizeOnArray(ctx context.Context, v *volume) error {
	id, err := r.onArray(ctx, v)
	if err != nil {
		return err
	}
	has, err := r.array.state(ctx)
	if err != nil {
		return err
	}
	for _, one := range has.Volumes {
		if one.ID == id && one.Size != v.size {
			r.found.broken(Once, nil, "volume %s has %d GiB on the array instead of %d", v.id, one.Size, v.size)
		}
	}
	return nil
}

// failed notes that a call for a volume failed for good.
func (r *run) failed(ctx context.Context, v *volume, what string, err error) bool {
	if err == nil {
		return false
	}
	if ctx.Err() == nil {
		r.found.broken(history.AnyOrder, nil, "%s volume %s (%s, %s): %v", what, v.id, v.name, v.kind, err)
	}
	return true
}

// elsewhere attaches a volume that is in use to another node.
func (r *run) elsewhere(ctx context.Context, v *volume) bool {
	attached, detached := r.provisioner.attachElsewhere(ctx, v)
	switch code := status.Code(attached); {
	case ctx.Err() != nil:
		return false
	case v.shared && attached != nil:
		r.found.broken(history.AnyOrder, nil, "volume %s: ReadWriteMany, but not attached to a second node: %v", v.id, attached)
	case !v.shared && attached == nil:
		r.found.broken(Once, nil, "volume %s: ReadWriteOnce, and attached to a second node", v.id)
	case !v.shared && code != codes.FailedPrecondition:
		r.found.broken(history.AnyOrder, nil, "volume %s: the attach to a second node was answered with %v", v.id, attached)
	}
	return !r.failed(ctx, v, "detach from another node", detached)
}
