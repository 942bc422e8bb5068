package ephemeral

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

const (
	// pinSlack is how much later than Config.MaxPin a pin may end: clocks differ, and a request takes
	// its time.
	pinSlack = time.Minute
	// sameHold is by how much the ends of two holds may differ that are the same: the request has the
	// end on the wall clock, the record after the unpublish.
	sameHold = time.Second
)

// Pin keeps a retained volume at least until then, whatever its lifespan is. Pressure makes it go
// last, and only when the disk is all but full. Pin takes the place of an earlier pin or release.
// by is who asks, why the reason. The pin is durable when Pin returns; it then describes the volume.
// To ask again for what is there changes nothing.
//
// The pin ends at that time, when it is taken back, and when the volume is published again: what its
// pod makes of it then is another story. A volume that is pinned in the moment of its expiry is
// either pinned or gone, and the error says so.
//
// The error is
//   - a [volume.ErrInvalid] that names the field: a text is missing, or cannot be recorded, or until
//     is in the past or beyond Config.MaxPin,
//   - a [volume.ErrNotFound] when the volume is not known,
//   - a [volume.ErrNotRetained] when a pod uses the volume or is about to,
//   - a [volume.ErrGone] when it is being deleted,
//   - a [volume.ErrCapped] when the pinned volumes would take more than Config.MaxPinned. A volume
//     that was not measured yet takes nothing until it is, and then stays pinned. So do all others
//     after the cap was lowered: only new pins are refused,
//   - a [volume.ErrBusy] or [volume.ErrUnavailable], which go away,
//   - or why the record could not be written.
func (n *Node) Pin(ctx context.Context, id volume.ID, until time.Time, by, why string) (volume.Description, error) {
	m := &messages.HoldVolume{Routing: n.routing(ctx, id), Kind: volume.Pinned, Until: until.Round(0), By: by, Why: why}
	return n.hold(ctx, "pin", m, func() error { return n.checkPin(m) })
}

// Unpin takes a pin back, or a release. The lifespan decides again. Where that is over, or nearly,
// the volume is kept for another Config.ReleaseGrace, so that a mistake can be made good; its pin
// then ends so much sooner. To ask for what is there changes nothing. It is durable when Unpin
// returns, which then describes the volume. The error is as for [Node.Pin].
func (n *Node) Unpin(ctx context.Context, id volume.ID, by string) (volume.Description, error) {
	m := &messages.HoldVolume{Routing: n.routing(ctx, id), By: by}
	return n.hold(ctx, "unpin", m, func() error { return checkTexts(by, "") })
}

// Release lets a retained volume go in Config.ReleaseGrace from now, or at the end of its lifespan if
// that is sooner; under pressure it goes before others. It takes the place of a pin, and a volume that
// was pinned has the whole grace. Pin and Unpin take it back. by is who asks; why, the reason, may be
// empty. To release again changes nothing: the first release's end stays. It is durable when Release
// returns, which then describes the volume. The error is as for [Node.Pin].
func (n *Node) Release(ctx context.Context, id volume.ID, by, why string) (volume.Description, error) {
	m := &messages.HoldVolume{Routing: n.routing(ctx, id), Kind: volume.Released, By: by, Why: why}
	return n.hold(ctx, "release", m, func() error { return checkTexts(by, why) })
}

// hold asks, and describes the volume that is held then.
func (n *Node) hold(ctx context.Context, verb string, m *messages.HoldVolume, check func() error) (volume.Description, error) {
	about := act{verb: verb, id: m.ID, by: m.By, why: m.Why, until: m.Until}
	err := n.decide(ctx, about, func() error {
		if err := check(); err != nil {
			return err
		}
		return n.Change(ctx, m)
	})
	if err != nil {
		return volume.Description{}, err
	}
	return n.Describe(ctx, m.ID)
}

func (n *Node) checkPin(m *messages.HoldVolume) error {
	now := time.Now()
	switch {
	case n.env.MaxPin == 0:
		return errNoPins
	case m.Why == "":
		return volume.Invalid("hold.why", "is missing: say for what the volume is kept")
	case !m.Until.After(now):
		return volume.Invalid("hold.until", "is not in the future")
	case m.Until.Sub(now) > n.env.MaxPin+pinSlack:
		return volume.Invalid("hold.until", fmt.Sprintf("is more than %s from now, which is as long as a volume may be pinned on this node",
			duration.Format(n.env.MaxPin)))
	}
	return checkTexts(m.By, m.Why)
}

// checkTexts checks what is to be recorded of a person's decision.
func checkTexts(by, why string) error {
	if by == "" {
		return volume.Invalid("hold.by", "is missing")
	}
	return volume.Hold{Kind: volume.Pinned, By: by, Why: why}.Check()
}

// hold refuses what can be refused without the volume's actor.
func (v *volumes) hold(m *messages.HoldVolume) (done bool) {
	known, rests := v.look(m.ID)
	switch {
	case v.ctx.Err() != nil:
		m.Fail(actors.ErrStopping)
	case known.Going, known.Phase == volume.Deleting:
		m.Fail(errGoing(m.ID))
	case !rests && !v.supervisor.IsAwake(m.ID):
		m.Fail(errNotFound(m.ID))
	case m.Kind == volume.Pinned:
		admit := v.pins.admits
		if rests {
			admit = v.pins.admit
		}
		if err := admit(m.ID, known.Size); err != nil {
			m.Fail(fmt.Errorf("volume %s: %w", m.ID, err))
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// hold returns the operation that changes the hold of the volume, if it is retained.
func (v *subject) hold(m *messages.HoldVolume) *actors.Operation {
	switch phase := volume.PhaseOf(v.record); {
	case v.record == nil:
		m.Fail(errNotFound(v.id))
	case phase.Live():
		m.Fail(errInUse(v.id))
	case v.deletes():
		m.Fail(errGoing(v.id))
	default:
		next := held(*v.record, m, time.Now(), v.ReleaseGrace)
		if next.Hold == v.record.Hold {
			m.Send(struct{}{}, nil)
			return nil
		}
		return v.rewrite("hold", m, func(t *task) error { return t.save(next) })
	}
	return nil
}

// held returns the record of a retained volume after a request. The release of a volume
// that only its pin has kept leaves the grace, in which it can be taken back, though its lifespan is over.
func held(r volume.Record, m *messages.HoldVolume, now time.Time, grace time.Duration) volume.Record {
	pinned := r.Hold.Kind == volume.Pinned
	r.Hold = holdOf(r, m, now, grace)
	if pinned && r.Hold.Kind == volume.Released {
		r.Lifespan = max(r.Lifespan, lifespan.RoundUp(r.Hold.For))
	}
	return r
}

// holdOf returns the hold of a retained volume after a request.
func holdOf(r volume.Record, m *messages.HoldVolume, now time.Time, grace time.Duration) volume.Hold {
	passed := max(now.Sub(r.Unpublished), 0)
	is, asked := r.Hold, volume.Hold{Kind: m.Kind, By: m.By, Why: m.Why}
	switch m.Kind {
	case volume.Pinned:
		asked.For = max(passed+m.Until.Sub(now), 0)
		if is.Kind == volume.Pinned && (asked.For-is.For).Abs() < sameHold {
			asked.For = is.For
		}
	case volume.Released:
		if is.Kind == volume.Released {
			return is
		}
		asked.For = passed + grace
	default:
		if is.Kind == volume.Pinned && r.Lifespan < passed+grace {
			is.For = min(is.For, passed+grace)
			return is
		}
		return volume.Hold{}
	}
	return asked
}

// errGoing is why nothing can be decided about a volume any more.
func errGoing(id volume.ID) error {
	return fmt.Errorf("%w: volume %s is being deleted", volume.ErrGone, id)
}

func errBusy(id volume.ID) error {
	return fmt.Errorf("%w: another operation for volume %s is running; try again", volume.ErrBusy, id)
}
