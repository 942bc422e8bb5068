package ephemeral

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
)

// End notes how a volume's pod ended. A retained volume has that durably when End returns. A volume
// that is published keeps it in memory and writes it when it is retained, so that it costs no sync;
// nothing else of it is touched, and after a crash its outcome is Unknown until it is reported again.
// Publishing the volume again clears it.
//
// The first outcome stays, except that Succeeded may be corrected to Failed or Stopped: an error in
// that direction only keeps the data longer. What is reported twice, or later than a better word,
// changes nothing, and is no error.
//
// Of a retained volume whose pod Succeeded the lifespan becomes what its terms say, if that is
// shorter: never less than Config.ReleaseGrace from now, rounded up to two digits of minutes. The
// correction gives it back. No other outcome changes a lifespan.
//
// The error is a [volume.ErrInvalid] for OutcomeUnknown or no outcome at all, a [volume.ErrNotFound]
// when no such volume of that pod is known or when it is being deleted, or why the record could not
// be written.
func (n *Node) End(ctx context.Context, id volume.ID, pod volume.PodUID, o volume.Outcome) error {
	if o == volume.OutcomeUnknown || !o.Valid() {
		return volume.Invalid("outcome", fmt.Sprintf("is %s, which no pod ends with", o))
	}
	_, err := actors.Ask(ctx, n.Root, n.Supervisor(), &messages.EndVolume{Routing: n.routing(ctx, id), Pod: pod, Outcome: o})
	return err
}

// end answers for a volume that sleeps and has nothing to learn. Otherwise the volume's actor does.
func (v *volumes) end(m *messages.EndVolume) (done bool) {
	if v.supervisor.IsAwake(m.ID) {
		return false
	}
	asleep, known := v.look(m.ID)
	switch {
	case !known || asleep.Pod != m.Pod:
		m.Fail(errOtherPod(m.ID, m.Pod))
	case asleep.Phase == volume.Deleting || asleep.Tries > 0:
		m.Fail(errBeingDeleted(m.ID))
	case learn(asleep.Outcome, m.Outcome) == asleep.Outcome:
		m.Send(struct{}{}, nil)
	default:
		return false
	}
	return true
}

// end takes over how the pod ended. An operation that runs works on a copy of what is known, so that
// it waits for its end.
func (v *volumeActor) end(c actor.Context, m *messages.EndVolume) {
	switch phase := volume.PhaseOf(v.record); {
	case !m.Deadline.IsZero() && !time.Now().Before(m.Deadline):
		m.Fail(context.DeadlineExceeded)
	case v.running != nil:
		if !v.defers(m) {
			m.Fail(errBusy(v.id))
		}
	case v.record == nil || v.record.Pod != m.Pod:
		m.Fail(errOtherPod(m.ID, m.Pod))
	case v.deletes():
		m.Fail(errBeingDeleted(m.ID))
	case learn(v.record.Outcome, m.Outcome) == v.record.Outcome:
		m.Send(struct{}{}, nil)
	case phase.Live():
		next := *v.record
		next.Outcome = learn(next.Outcome, m.Outcome)
		v.record = &next
		m.Send(struct{}{}, nil)
	default:
		next := withOutcome(*v.record, m.Outcome, time.Now(), v.ReleaseGrace)
		v.rewrite(c, "end", m, m.Reply, func(t *task) error { return t.end(next) })
	}
}

// end records how the pod of a retained volume ended.
func (t *task) end(next volume.Record) error {
	err := t.save(next)
	if err == nil {
		t.Metrics.OutcomeKnown(next.Outcome)
	}
	return err
}

// learn returns the outcome that is known after another report of it.
func learn(known, said volume.Outcome) volume.Outcome {
	if known == volume.OutcomeUnknown || known == volume.Succeeded && said != volume.OutcomeUnknown {
		return said
	}
	return known
}

// withOutcome returns the record of a retained volume whose outcome became known.
func withOutcome(r volume.Record, said volume.Outcome, now time.Time, grace time.Duration) volume.Record {
	before := r.Outcome
	r.Outcome = learn(before, said)
	switch {
	case r.Terms == volume.Terms{}, r.Outcome == before:
	case r.Outcome == volume.Succeeded:
		least := lifespan.RoundUp(max(now.Sub(r.Unpublished), 0) + grace)
		r.Lifespan = min(r.Lifespan, max(r.Terms.Kept(r.Outcome, grace), least))
	case before == volume.Succeeded:
		r.Lifespan = max(r.Lifespan, r.Terms.Kept(r.Outcome, grace))
	}
	return r
}

// keeps is how long a volume is kept that is retained now.
func (e *environment) keeps(r volume.Record) time.Duration {
	if r.Terms == (volume.Terms{}) {
		return e.Lifespan
	}
	return r.Terms.Kept(r.Outcome, e.ReleaseGrace)
}
