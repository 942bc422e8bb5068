package local

import (
	"context"
	"errors"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	localmessages "github.com/katbox/katbox/messages/local"
)

// sizeUnit is what sizes are multiples of.
const sizeUnit = 1 << 20

func roundUp(bytes int64) int64 { return (bytes + sizeUnit - 1) / sizeUnit * sizeUnit }

// make makes a volume, unless there is one.
func (t *task) make(ctx context.Context, pool string, v local.NewVolume) (made local.Volume, err error) {
	r := local.Record{
		Name: v.Name, State: local.Making, Size: roundUp(v.Size), Block: v.Block, FSType: v.FSType, Comment: v.Comment, Source: v.Source,
		Created: time.Now().UTC(),
	}
	p, err := t.use(ctx, pool)
	if err != nil {
		return made, err
	}
	defer p.Release()
	if err := possible(p.Describe(), v); err != nil {
		return made, err
	}
	if r, err = t.like(p, r); err != nil {
		return made, err
	}
	r, err = t.ensure(ctx, p, r)
	if err != nil {
		return made, err
	}
	made, err = t.describe(ctx, p, r)
	return made, err
}

// possible reports why a pool can have no such volume.
func possible(p local.Pool, v local.NewVolume) error {
	switch {
	case v.Block && !p.Block:
		return problemf(volume.ErrInvalid, "volume %s cannot be a block device: the pool %s keeps volumes as %s", v.Name, p.UUID, p.Backend)
	case v.Source != local.Source{} && !p.Copies:
		return problemf(volume.ErrInvalid, "volume %s cannot be made from another: the pool %s (%s on %s) makes no copies", v.Name, p.UUID,
			p.Backend, p.FSType)
	}
	return nil
}

// like completes the record of a volume that is to be a copy: it has the file system of its origin.
func (t *task) like(p localmessages.UsableLocal, r local.Record) (local.Record, error) {
	name := r.Source.Snapshot + r.Source.Volume // one of them
	if name == "" {
		return r, nil
	}
	origin, err := p.Load(name)
	switch {
	case isNotFound(err): // it may have gone since the volume was made
		return r, nil
	case err != nil:
		return r, t.failed(err, "read the record of "+name)
	case origin.Block != r.Block:
		return r, problemf(volume.ErrInvalid, "volume %s cannot be made as %s: %s is %s", r.Name, kindOf(r.Block), name, kindOf(origin.Block))
	case r.FSType == "":
		r.FSType = origin.FSType
	}
	if origin.GrowsFrom != 0 { // the caller does not know yet how large it is to be
		r.Size = max(r.Size, origin.Size)
	}
	return r, nil
}

// snapshot makes a snapshot of a volume, unless there is one.
func (t *task) snapshot(ctx context.Context, pool, of string) (s local.Snapshot, err error) {
	p, err := t.use(ctx, pool)
	if err != nil {
		return s, err
	}
	defer p.Release()
	if !p.Describe().Copies {
		return s, problemf(volume.ErrInvalid, "snapshot %s cannot be made: the pool %s (%s on %s) makes no copies", t.volume, pool,
			p.Describe().Backend, p.Describe().FSType)
	}
	r, known, err := t.load(p)
	if err != nil {
		return s, err
	}
	if !known {
		origin, err := p.Load(of)
		switch {
		case isNotFound(err):
			return s, problemf(volume.ErrNotFound, "snapshot %s cannot be made: pool %s has no volume %s", t.volume, pool, of)
		case err != nil:
			return s, t.failed(err, "read the record of volume "+of)
		}
		r = local.Record{
			Name: t.volume, State: local.Making, Of: of, Size: origin.Size, Block: origin.Block, FSType: origin.FSType, Created: time.Now().UTC(),
		}
	}
	if r, err = t.ensure(ctx, p, r); err != nil {
		return s, err
	}
	return snapshotOf(pool, r), nil
}

// ensure makes what a record says, unless it is there. It returns the record of what is there.
func (t *task) ensure(ctx context.Context, p localmessages.UsableLocal, r local.Record) (is local.Record, err error) {
	before, known, err := t.load(p)
	if err != nil {
		return r, err
	}
	if known && before.State == local.Deleting { // by an earlier run
		if err := t.bury(ctx, p, before); err != nil {
			return r, t.later(err, err)
		}
		known = false
	}
	switch {
	case known && before.IsSnapshot() != r.IsSnapshot():
		return r, problemf(volume.ErrConflict, "%s: pool %s has a volume or a snapshot of this name already", t.text, p.UUID)
	case known && before.State == local.Ready:
		return before, nil
	case known:
		return t.fill(ctx, p, before)
	}
	if err := t.reserve(ctx, p, r); err != nil {
		return r, err
	}
	err = t.save(p, r)
	switch {
	case errors.Is(err, local.ErrUnwritable): // nothing has begun, and nothing can be undone
		t.gone(p)
		return r, err
	case err != nil: // it may be there all the same
		return r, t.abandon(ctx, p, r, err)
	}
	return t.fill(ctx, p, r)
}

// fill makes the data of what is recorded.
func (t *task) fill(ctx context.Context, p localmessages.UsableLocal, r local.Record) (is local.Record, err error) {
	if r.Source != (local.Source{}) || r.IsSnapshot() {
		t.progress.Waits("the copy of " + r.Source.Snapshot + r.Source.Volume + r.Of)
	}
	err = p.Make(ctx, r)
	switch {
	case err == nil:
	case ctx.Err() != nil: // it goes on after the next start
		return r, t.later(err, t.failed(err, "make it"))
	case errors.Is(err, volume.ErrUnavailable): // it goes on once the disk is back
		return r, t.failed(err, "make it")
	default:
		return r, t.abandon(ctx, p, r, t.notMade(err))
	}
	r.State = local.Ready
	if err := t.save(p, r); err != nil {
		return r, t.later(err, err)
	}
	return r, nil
}

// notMade is the error of what could not be made, once nothing is left of that: it may be made on another disk.
func (t *task) notMade(err error) error {
	why := t.failed(err, "make it")
	if errors.Is(why, volume.ErrUncertain) && !errors.Is(err, volume.ErrUncertain) {
		return because(local.ErrUnwritable, err, "%s: make it", t.text)
	}
	return why
}

// later notes why the operation has to go on later, and returns its error.
func (t *task) later(why, err error) error {
	t.unfinished = why
	return err
}

// abandon leaves nothing of what could not be made.
func (t *task) abandon(ctx context.Context, p localmessages.UsableLocal, r local.Record, why error) error {
	r.State = local.Deleting
	t.settle(p, r)
	_ = p.Save(r) // on a full disk it may be impossible; then the next run tries to make it once more
	if err := t.bury(ctx, p, r); err != nil {
		return t.later(err, because(volume.ErrUncertain, errors.Join(why, err), "%s was not made, and that is not undone yet", t.text))
	}
	return why
}

// delete deletes a volume or a snapshot that nothing uses.
func (t *task) delete(ctx context.Context, pool string, snapshot bool) error {
	p, err := t.use(ctx, pool)
	if err != nil {
		return err
	}
	defer p.Release()
	r, known, err := t.load(p)
	switch {
	case err != nil:
		return err
	case !known:
		t.gone(p)
		return nil
	case r.IsSnapshot() != snapshot:
		return problemf(volume.ErrConflict, "%s was not deleted: pool %s has something else of this name", t.text, pool)
	}
	if r.State != local.Deleting {
		if _, err := actors.Ask(ctx, t.Root, t.keeper, &localmessages.ClaimLocal{Pool: pool, Name: t.volume}); err != nil {
			return err
		}
		before := r
		r.State = local.Deleting
		if err := t.unused(p, "deleted"); err != nil {
			t.settle(p, before)
			return err
		}
		if err := t.save(p, r); err != nil {
			return err
		}
	}
	if err := t.bury(ctx, p, r); err != nil {
		return t.later(err, err)
	}
	return nil
}

// bury moves the data of what is recorded as being deleted to the trash, and forgets it.
func (t *task) bury(ctx context.Context, p localmessages.UsableLocal, r local.Record) error {
	if err := t.unused(p, "deleted"); err != nil {
		return err
	}
	if err := t.unshown(ctx); err != nil {
		return err
	}
	if err := p.Trash(r); err != nil {
		return t.failed(err, "move it to the trash")
	}
	if err := p.Forget(r.Name); err != nil {
		return t.failed(err, "remove its record")
	}
	t.gone(p)
	return nil
}

// unused fails while the volume is mounted anywhere.
func (t *task) unused(p localmessages.UsableLocal, doing string) error {
	mounts, err := t.mounts(p)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return problemf(pools.ErrInUse, "%s was not %s: it is mounted at %s", t.text, doing, mounts[0].Target)
	}
	return nil
}

// finish goes on with what the record of an earlier run says.
func (t *task) finish(ctx context.Context, pool string) error {
	p, err := t.use(ctx, pool)
	if errors.Is(err, volume.ErrUnavailable) {
		return nil // the keeper asks once more when its disk is back
	}
	if err != nil {
		return err
	}
	defer p.Release()
	r, known, err := t.load(p)
	switch {
	case err != nil:
		return err
	case !known:
		t.gone(p)
		return nil
	case r.State == local.Making:
		_, _ = t.fill(ctx, p, r)
		return t.unfinished
	case r.State == local.Deleting:
		return t.bury(ctx, p, r)
	}
	return nil
}

// describe returns what the controller learns of a volume.
func (t *task) describe(ctx context.Context, p localmessages.UsableLocal, r local.Record) (v local.Volume, err error) {
	mounts, err := t.mounts(p)
	if err != nil {
		return v, err
	}
	names, err := actors.Ask(ctx, t.Root, t.keeper, &localmessages.ListLocal{Pool: p.UUID, Only: t.volume})
	return volumeOf(p.UUID, r, len(mounts) > 0, len(names) == 1 && names[0].HasSnapshots), err
}

func volumeOf(pool string, r local.Record, used, hasSnapshots bool) local.Volume {
	return local.Volume{
		Name: r.Name, Pool: pool, Size: r.Has(), Block: r.Block, FSType: r.FSType, Comment: r.Comment, Source: r.Source,
		Ready: r.State == local.Ready, InUse: used, HasSnapshots: hasSnapshots, Created: r.Created,
	}
}

func snapshotOf(pool string, r local.Record) local.Snapshot {
	return local.Snapshot{Name: r.Name, Pool: pool, Volume: r.Of, Size: r.Size, Created: r.Created, Ready: r.State == local.Ready}
}

// failed makes an error of a step that failed. Kinds that the caller acts on stay such.
func (t *task) failed(err error, doing string) error {
	for _, kind := range []error{
		volume.ErrNoSpace, volume.ErrInvalid, volume.ErrConflict, volume.ErrBusy, local.ErrUnwritable, volume.ErrUnavailable,
		volume.ErrNotFound, pools.ErrInUse, pools.ErrOutOfRange,
	} {
		if errors.Is(err, kind) {
			return because(kind, err, "%s: %s", t.text, doing)
		}
	}
	if errors.Is(err, attach.ErrNotOurs) {
		return because(volume.ErrForeignMount, err, "%s: %s", t.text, doing)
	}
	return because(volume.ErrUncertain, err, "%s: %s", t.text, doing)
}

func isNotFound(err error) bool { return errors.Is(err, volume.ErrNotFound) }
