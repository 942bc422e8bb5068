package arrays

import (
	"context"
	"errors"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
	"github.com/katbox/katbox/messages"
)

const (
	// leftoversInterval is the time between two looks for leftovers.
	leftoversInterval = time.Minute
	// leftAfter is how long nothing of a volume has to be mounted before the API server is asked about it. The
	// kubelet repeats a stage at least every two minutes.
	leftAfter = 5 * time.Minute
)

// leftovers finds volumes of which no call comes any more. A kubelet that is restarted knows volumes by what is
// mounted: one whose stage has not come so far it forgets when the pod is deleted, and never unstages. Its record,
// its disk and its session would stay until the node boots.
type leftovers struct {
	*environment
	actors.Simple
	// since is when a look first found nothing mounted of a volume. Only one look at a time uses it.
	since map[string]time.Time
}

// Plan knows no requests.
func (l *leftovers) Plan(messages.Request) *actors.Operation { return nil }

// Rest returns the operation that looks once. The next look is up to the watch, whatever comes of this one.
func (l *leftovers) Rest() *actors.Operation {
	return &actors.Operation{Name: "look for leftovers", Run: func(ctx context.Context) actors.Outcome {
		err := l.look(ctx)
		if err != nil {
			l.Log.V(1).Info("cannot look for all that is left of volumes", "reason", volume.OneLine(err))
		}
		return actors.Outcome{Err: err}
	}}
}

// look clears the volumes of which nothing has been mounted for a while and which are not attached.
func (l *leftovers) look(ctx context.Context) error {
	records, unread := l.Staged.All() // those that it could read
	table, err := l.Table()
	if err != nil {
		return errors.Join(err, unread)
	}
	since := map[string]time.Time{}
	for _, r := range records {
		if _, there := attach.At(table, pools.StagedAt(r.Path, r.Block)); isNote(r) || there {
			continue
		}
		first, known := l.since[r.Volume]
		if !known {
			first = time.Now()
		}
		since[r.Volume] = first
		if time.Since(first) < leftAfter {
			continue
		}
		if err := l.clear(ctx, r); err != nil {
			l.Log.V(1).Info("leaves what there is of a volume", "volume", r.Volume, "reason", volume.OneLine(err))
		}
	}
	l.since = since
	return unread
}

// clear asks the API server before the volume's actor does, so that no call of the kubelet meets a busy volume
// because of a volume that is attached.
func (l *leftovers) clear(ctx context.Context, r staged.Record) error {
	attached, err := l.attached(ctx, r.Volume)
	if err != nil || attached {
		return err
	}
	volume := messages.Routing{ID: messages.KeyOf(kindVolume, r.Volume)}
	return l.Change(ctx, &messages.ClearDetached{Routing: volume})
}

func (e *environment) attached(ctx context.Context, id string) (bool, error) {
	return e.Cluster.Attached(ctx, pools.AttachmentName(id, e.NodeName))
}

// clearDetached removes the disk, the session and the record of a volume that is mounted nowhere and not attached to
// this node. It asks once more: the volume may have been attached and staged meanwhile.
func (t *task) clearDetached(ctx context.Context) error {
	r, recorded, err := t.load()
	if err != nil || !recorded {
		return err
	}
	now, err := t.trace(ctx, r)
	if err != nil || now.there || len(now.elsewhere) > 0 {
		return err
	}
	if attached, err := t.attached(ctx, t.volume); err != nil || attached {
		return err
	}
	t.Log.Info("clears a volume that was being staged and is not attached any more", "volume", t.volume)
	if err := t.clear(r, now); err != nil {
		return err
	}
	if err := t.leave(ctx, r, now); err != nil {
		return err
	}
	return t.forget()
}
