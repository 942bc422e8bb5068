package local

import (
	"context"
	"slices"
	"strings"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/persistent"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/messages"
	localmessages "github.com/katbox/katbox/messages/local"
)

// subject is a volume or a snapshot that is being changed, or a volume that is being measured.
type subject struct {
	*environment
	actors.Simple
	kind, volume string
	// unfinished is the pool in which something may be unfinished.
	unfinished string
}

// text names the subject in errors.
func (s *subject) text() string {
	if s.kind == kindSnapshot {
		return "snapshot " + s.volume
	}
	return "volume " + s.volume
}

// Rest finishes what was begun.
func (s *subject) Rest() *actors.Operation {
	if s.unfinished == "" {
		return nil
	}
	t := s.task()
	return &actors.Operation{Name: "finish", Run: func(ctx context.Context) actors.Outcome {
		return actors.Outcome{Unfinished: t.finish(ctx, s.unfinished)}
	}, Behind: anything, Progress: &t.progress}
}

// Plan returns the operation that a request asks for. Others wait behind one that takes no longer than the disk needs for an
// entry of a directory. What meets the making of a volume is refused instead, which may copy much.
func (s *subject) Plan(m messages.Request) *actors.Operation {
	t := s.task()
	op := s.plan(m, t)
	if op == nil {
		return nil
	}
	op.Progress = &t.progress
	op.Then = func(e *actors.Outcome) {
		if t.unfinished != nil {
			e.Unfinished = t.unfinished
		}
	}
	switch m.(type) {
	case *localmessages.MakeLocal, *localmessages.SnapshotLocal:
	default:
		op.Behind = anything
	}
	return op
}

func (s *subject) plan(m messages.Request, t *task) *actors.Operation {
	switch m := m.(type) {
	case *localmessages.MakeLocal:
		s.unfinished = m.Pool
		same := func(o *localmessages.MakeLocal) bool { return o.Pool == m.Pool && o.New == m.New }
		return actors.Order("make", m, same, func(ctx context.Context) (local.Volume, error) { return t.make(ctx, m.Pool, m.New) })
	case *localmessages.SnapshotLocal:
		s.unfinished = m.Pool
		same := func(o *localmessages.SnapshotLocal) bool { return o.Pool == m.Pool && o.Of == m.Of }
		return actors.Order("snapshot", m, same, func(ctx context.Context) (local.Snapshot, error) { return t.snapshot(ctx, m.Pool, m.Of) })
	case *localmessages.DeleteLocal:
		s.unfinished = m.Pool
		same := func(o *localmessages.DeleteLocal) bool { return o.Pool == m.Pool }
		return actors.Change("delete", m, same, func(ctx context.Context) error { return t.delete(ctx, m.Pool, m.Snapshot) })
	case *localmessages.GrowLocal:
		same := func(o *localmessages.GrowLocal) bool { return o.Pool == m.Pool && o.Bytes == m.Bytes }
		return actors.Order("grow", m, same, func(ctx context.Context) (local.Volume, error) { return t.grow(ctx, m.Pool, m.Bytes) })
	case *localmessages.CommentLocal:
		same := func(o *localmessages.CommentLocal) bool { return o.Pool == m.Pool && o.Comment == m.Comment }
		return actors.Order("comment", m, same, func(ctx context.Context) (local.Volume, error) { return t.comment(ctx, m.Pool, m.Comment) })
	}
	return persistent.Plan(m, t)
}

// anything waits for its turn.
func anything(messages.Request) bool { return true }

func (s *subject) task() *task {
	return &task{environment: s.environment, volume: s.volume, text: s.text()}
}

// task is one operation: sequential code in a goroutine of its own.
type task struct {
	*environment
	// volume is the name of the volume or the snapshot, text names it in errors.
	volume, text string
	progress     actors.Progress
	// unfinished is why the operation has to go on later; nil when it has not.
	unfinished error
}

// use returns the directory of a pool, or of the one that has the volume where pool is empty.
func (t *task) use(ctx context.Context, pool string) (localmessages.UsableLocal, error) {
	return t.environment.use(ctx, &localmessages.UseLocal{Pool: pool, Name: t.volume})
}

// load returns the record of what the task is about.
func (t *task) load(p localmessages.UsableLocal) (r local.Record, known bool, err error) {
	r, err = p.Load(t.volume)
	switch {
	case isNotFound(err):
		return r, false, nil
	case err != nil:
		return r, false, t.failed(err, "read its record")
	}
	return r, true, nil
}

// whole returns the record of a volume that is whole.
func (t *task) whole(p localmessages.UsableLocal) (local.Record, error) {
	r, known, err := t.load(p)
	switch {
	case err != nil:
		return r, err
	case !known || r.IsSnapshot() || r.State == local.Deleting:
		return r, problemf(volume.ErrNotFound, "pool %s has no volume %s", p.UUID, t.volume)
	case r.State != local.Ready:
		return r, problemf(volume.ErrBusy, "volume %s is being made", t.volume)
	}
	return r, nil
}

// save makes a record durable, and the keeper know it. Where that fails, the keeper knows the record that is there, and
// promises no more room than that says.
func (t *task) save(p localmessages.UsableLocal, r local.Record) error {
	if err := p.Save(r); err != nil {
		if is, known, unread := t.load(p); unread == nil && known {
			t.settle(p, is)
		}
		return t.failed(err, "save its record")
	}
	t.settle(p, r)
	return nil
}

func (t *task) settle(p localmessages.UsableLocal, r local.Record) {
	t.Root.Send(t.keeper, &localmessages.SettleLocal{Pool: p.UUID, Record: r})
}

func (t *task) gone(p localmessages.UsableLocal) {
	t.Root.Send(t.keeper, &localmessages.ForgetLocal{Pool: p.UUID, Name: t.volume})
}

// reserve promises the pool's room to a record.
func (t *task) reserve(ctx context.Context, p localmessages.UsableLocal, r local.Record) error {
	_, err := actors.Ask(ctx, t.Root, t.keeper, &localmessages.ReserveLocal{Pool: p.UUID, Record: r})
	return err
}

// mounts returns the mounts of the volume that the pool and the mount table know of.
func (t *task) mounts(p localmessages.UsableLocal) ([]attach.Mount, error) {
	table, err := t.table()
	if err != nil {
		return nil, err
	}
	own, err := p.Mounts(table, t.volume)
	if err != nil {
		return nil, t.failed(err, "look where it is mounted")
	}
	for _, m := range t.named(table) {
		if !slices.ContainsFunc(own, func(o attach.Mount) bool { return o.Target == m.Target }) {
			own = append(own, m)
		}
	}
	return own, nil
}

// named returns the mounts that show the volume's name.
func (t *task) named(table []attach.Mount) (own []attach.Mount) {
	for _, m := range table {
		if name, ok := t.nameOf(m); ok && name == t.volume {
			own = append(own, m)
		}
	}
	return own
}

// nameOf returns the volume that a mount is of. Of most mounts their lines tell that they are of none, so that a long
// table costs little.
func (e *environment) nameOf(m attach.Mount) (string, bool) {
	if !strings.Contains(m.Root, "/volumes/") && !strings.HasPrefix(m.Source, "/dev/loop") && !strings.HasPrefix(m.Root, "/loop") {
		return "", false
	}
	return e.Machine.NameOf(m)
}
