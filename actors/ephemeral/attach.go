package ephemeral

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// A pod may attach a retained volume of its namespace, read-only: its own volume then has no data, and
// its record names the other one, the source. The owner of all volumes decides that in the turn in which
// it also orders deletions, so that none can come between. While it lasts the source sleeps without a
// deadline; people list, read and pin it as before.

// attachLimit bounds the wait for the record of a source whose pod has ended.
const attachLimit = 30 * time.Second

// attachments are the retained volumes that pods have attached.
type attachments struct {
	sources map[volume.ID]volume.Place // by the volume that has no data of its own
	// held are the sources, and who has each. One that sleeps does not go.
	held map[volume.ID]attachment
}

// attachment is what is known of the volume that a pod has another one attached by.
type attachment struct {
	by    volume.Record // no more than its names
	since time.Time
	// late: it has been said that it lasts for longer than it may.
	late bool
}

func newAttachments() *attachments {
	return &attachments{sources: map[volume.ID]volume.Place{}, held: map[volume.ID]attachment{}}
}

func (a *attachments) begin(by volume.Record, source volume.Place, since time.Time) {
	a.sources[by.ID] = source
	a.held[source.ID] = attachment{by: by, since: since}
}

// holds reports whether a pod has the volume attached.
func (a *attachments) holds(source volume.ID) bool {
	_, ok := a.held[source]
	return ok
}

// attach decides about a publish. The error is why it is refused.
func (v *volumes) attach(p volume.Publication) error {
	source, attached := v.retention.attached.sources[p.ID]
	switch {
	case attached && source == p.Attach: // repeated
		return nil
	case attached:
		return fmt.Errorf("%w: volume %s has volume %s attached, and is asked to have another one", volume.ErrConflict, p.ID, source.ID)
	case p.Attach == volume.Place{}:
		return nil
	case p.Refused != nil:
		return p.Refused
	}
	if _, known := v.look(p.ID); known {
		return fmt.Errorf("%w: volume %s has data of its own", volume.ErrConflict, p.ID)
	}
	if v.supervisor.IsAwake(p.ID) {
		return errBusy(p.ID)
	}
	if err := v.mayAttach(p); err != nil {
		return err
	}
	by := volume.Record{ID: p.ID, Pod: p.Pod, Namespace: p.Namespace, PodName: p.PodName, VolumeName: p.VolumeName}
	v.retention.attach(by, p.Attach, time.Now())
	return nil
}

// mayAttach refuses what is not a retained volume of the pod's namespace. The error for one of another
// namespace is that for a volume which is not there. What the API server has denied to be of that namespace
// cannot be attached; for what it has confirmed see [volumes.ofOneNamespace]. Of what no gateway was asked
// about the name of the namespace is all that is known.
func (v *volumes) mayAttach(p volume.Publication) error {
	id := p.Attach.ID
	asleep, known := v.look(id)
	same := known && asleep.Pod == p.Attach.Pod && asleep.Namespace == p.Namespace && p.Namespace != "" &&
		asleep.Owner.Verdict != volume.Denied
	switch {
	case p.Attach.Pod == p.Pod:
		return volume.Invalid(`volumeAttributes["attach"]`, "is a volume of the pod itself")
	case asleep.Going, same && (asleep.Phase == volume.Deleting || asleep.Tries > 0):
		return errBeingDeleted(id)
	case !known && v.supervisor.IsAwake(id):
		return fmt.Errorf("%w: volume %s, which is to be attached, is not retained yet", volume.ErrBusy, id)
	case !same:
		return errNotRetainedThere(p)
	}
	if err := v.ofOneNamespace(p, asleep.Owner); err != nil {
		return err
	}
	if v.retention.attached.holds(id) {
		return fmt.Errorf("%w: volume %s is attached to another pod", volume.ErrOtherTarget, id)
	}
	return v.reserveAttach(asleep)
}

func errNotRetainedThere(p volume.Publication) error {
	return fmt.Errorf("%w: the namespace of the pod has retained no volume %s of pod %s on this node",
		volume.ErrNotFound, p.Attach.ID, p.Attach.Pod)
}

// attach keeps a source: it does not go.
func (r *retention) attach(by volume.Record, source volume.Place, since time.Time) {
	r.attached.begin(by, source, since)
	r.index.Keep(source.ID, true)
}

// attachAll is attach for the volumes that a start has found.
func (r *retention) attachAll(found []volume.Record) {
	for i := range found {
		if by := &found[i]; by.Attach != (volume.Place{}) {
			r.attach(*by, by.Attach, attachedSince(*by, time.Now()))
		}
	}
}

// detach gives the deadline back to the source of a volume that is gone, if it had one.
func (r *retention) detach(by volume.ID) (source volume.Place, ok bool) {
	source, ok = r.attached.sources[by]
	if !ok {
		return source, false
	}
	delete(r.attached.sources, by)
	delete(r.attached.held, source.ID)
	r.index.Keep(source.ID, false)
	r.deleteDue()
	return source, true
}

// prolong keeps the volume for a last grace from now on, if it is retained, but not beyond what attaching may
// keep it.
func (v *subject) prolong(m *messages.ProlongVolume) *actors.Operation {
	switch phase := volume.PhaseOf(v.record); {
	case phase != volume.Retained || v.deletes():
		m.Send(struct{}{}, nil) // its pod is back
	default:
		next := prolonged(*v.record, time.Now(), v.ReleaseGrace, v.mostAttached(*v.record))
		if next.Lifespan == v.record.Lifespan && next.Hold == v.record.Hold {
			m.Send(struct{}{}, nil)
			return nil
		}
		op := v.rewrite("prolong", m, func(t *task) error { return t.save(next) })
		op.Beside = true
		return op
	}
	return nil
}

// prolonged returns the record of a retained volume that is kept for at least the grace from now on, if that
// is no longer than most after its unpublish.
func prolonged(r volume.Record, now time.Time, grace, most time.Duration) volume.Record {
	passed := max(now.Sub(r.Unpublished), 0)
	least := min(passed+grace, most)
	if least <= passed || r.Keep() >= least {
		return r
	}
	r.Lifespan = max(r.Lifespan, lifespan.RoundUp(least))
	if r.Hold.Kind == volume.Released {
		r.Hold.For = max(r.Hold.For, least)
	}
	return r
}

// detach ends a volume that has no data of its own: nothing is retained, and nothing remembered. Before
// that its source is prolonged durably; where that cannot be recorded, as on a full disk, the pod does
// not wait for it. A daemon that stops leaves both to the next one.
func (t *task) detach() error {
	ctx, cancel := context.WithTimeout(t.ctx, attachLimit)
	defer cancel()
	m := &messages.ProlongVolume{Routing: messages.Routing{ID: t.record.Attach.ID}, By: t.id}
	err := t.Change(ctx, m)
	if t.ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w: volume %s stays attached until the next start", actors.ErrStopping, t.record.Attach.ID)
	}
	if err != nil {
		t.Log.Info("a volume that was attached is not kept for longer than before", logkeys.About(*t.record, logkeys.Cause, err.Error(),
			"attached", t.record.Attach.String())...)
	}
	if log := t.Log.V(1); log.Enabled() {
		log.Info("detached", logkeys.About(*t.record, "attached", t.record.Attach.String())...)
	}
	return t.forget()
}
