package ephemeral

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/messages"
)

// archiveSlice is how many of the volumes that wait one question looks at, and how many of all one look for copies that have ended:
// it takes about a millisecond, and calls wait for the supervisor.
const archiveSlice = 1000

// ToArchive returns which retained volume is archived next, and what waits for that. The volumes of not do not count; those of
// later count, and are not next. The caller does not change either any more. Volumes that come or go meanwhile may be missed: for
// those that come Config.ToArchive is called.
func (n *Node) ToArchive(ctx context.Context, not, later map[volume.ID]struct{}) (w volume.Waiting, err error) {
	without, behind, from := volume.NewIDs(not), volume.NewIDs(later), volume.Key{}
	for {
		part, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.NextToArchive{Not: without, Later: behind, From: from})
		if err != nil {
			return volume.Waiting{}, err
		}
		if w, from = w.With(part.Waiting), part.Next; from.IsZero() {
			return w, nil
		}
	}
}

// ReadToArchive is [Node.Read] for the archive. Once it has a copy of what was read, archived records until when; it returns
// once that is durable. Its error is a [volume.ErrNotRetained] or a [volume.ErrGone] if the permission to read was lost
// meanwhile, which may have been after the last byte, or why the record could not be written.
func (n *Node) ReadToArchive(ctx context.Context, id volume.ID) (
	reading *files.Reading, archived func(ctx context.Context, until time.Time) error, err error,
) {
	begin := &messages.BeginReading{ID: id, ToArchive: true}
	reading, err = n.read(ctx, begin)
	return reading, func(ctx context.Context, until time.Time) error {
		return n.Change(ctx, &messages.ArchivedVolume{Routing: n.routing(ctx, id), Begun: begin, Until: until})
	}, err
}

// tellToArchive calls Config.ToArchive if there is news of what is to be archived.
func (v *volumes) tellToArchive() {
	if changes := v.index.ArchiveChanges(); v.ToArchive != nil && changes != v.toldToArchive {
		v.toldToArchive = changes
		v.ToArchive()
	}
}

func (v *volumes) nextToArchive(m *messages.NextToArchive) {
	v.tell()
	w, next := v.index.ToArchive(time.Now(), m.Not, m.Later, m.From, archiveSlice)
	m.Send(messages.WaitingPart{Waiting: w, Next: next}, nil)
}

// archived refuses what was not read to its end.
func (v *volumes) archived(m *messages.ArchivedVolume) (done bool) {
	if !v.leases.holds(m.Begun) {
		m.Fail(fmt.Errorf("%w: volume %s is not what was archived any more", volume.ErrNotRetained, m.ID))
		return true
	}
	return false
}

// archived returns the operation that records that the archive has a copy.
func (v *subject) archived(m *messages.ArchivedVolume) *actors.Operation {
	switch {
	case volume.PhaseOf(v.record) != volume.Retained:
		m.Fail(errInUse(v.id))
	case v.deletes():
		m.Fail(errGoing(v.id))
	default:
		next := v.record.InArchive(m.Until)
		return v.rewrite("archived", m, func(t *task) error { return t.save(next) })
	}
	return nil
}
