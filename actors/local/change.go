package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	localmessages "github.com/katbox/katbox/messages/local"
)

// grow makes a volume larger. The record says so first, and from which size: that is the volume's until it has really
// grown. What a crash or a refusal of the kernel leaves undone the next grow does, or the next stage.
func (t *task) grow(ctx context.Context, pool string, bytes int64) (v local.Volume, err error) {
	p, err := t.use(ctx, pool)
	if err != nil {
		return v, err
	}
	defer p.Release()
	r, err := t.whole(p)
	if err != nil {
		return v, err
	}
	before := r
	if r.Size = max(r.Size, roundUp(bytes)); r.Size > before.Size {
		if err := t.reserve(ctx, p, r); err != nil {
			return v, err
		}
		r.GrowsFrom = before.Has()
		if err := t.save(p, r); err != nil {
			return v, err
		}
	}
	grown, err := t.complete(ctx, p, r)
	if err != nil {
		if errors.Is(err, volume.ErrNoSpace) && r.Size > before.Size {
			err = errors.Join(err, t.save(p, before)) // the room is another's
		}
		return v, err
	}
	return t.describe(ctx, p, grown)
}

// complete makes a volume as large as its record says. Then the record says that, too.
func (t *task) complete(ctx context.Context, p localmessages.UsableLocal, r local.Record) (local.Record, error) {
	if err := p.Grow(ctx, r); err != nil {
		doing := fmt.Sprintf("grow it to %d bytes", r.Size)
		if r.GrowsFrom != 0 {
			doing = fmt.Sprintf("grow it from %d to %d bytes; that is tried again when it is staged next", r.GrowsFrom, r.Size)
		}
		return r, t.failed(err, doing)
	}
	if r.GrowsFrom == 0 {
		return r, nil
	}
	r.GrowsFrom = 0
	return r, t.save(p, r)
}

// comment changes a volume's comment. One that is in use does not become retained.
func (t *task) comment(ctx context.Context, pool, comment string) (v local.Volume, err error) {
	p, err := t.use(ctx, pool)
	if err != nil {
		return v, err
	}
	defer p.Release()
	r, err := t.whole(p)
	if err != nil {
		return v, err
	}
	retained := isRetained(r)
	before := r.Comment
	r.Comment = comment
	if isRetained(r) && !retained {
		if err := t.unused(p, "retained"); err != nil {
			return v, err
		}
	}
	if before != comment {
		if err := t.save(p, r); err != nil {
			return v, err
		}
	}
	return t.describe(ctx, p, r)
}
