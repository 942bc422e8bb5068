package ephemeral

import (
	"context"
	"fmt"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
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
	return n.Change(ctx, &messages.EndVolume{Routing: n.routing(ctx, id), Pod: pod, Outcome: o})
}

// outcomeNews is what an EndVolume says.
func outcomeNews(m *messages.EndVolume) news {
	return news{Request: m, pod: m.Pod, reply: m.Reply, learn: func(r volume.Record) (volume.Record, bool) {
		before := r.Outcome
		r.Outcome = learn(before, m.Outcome)
		return r, r.Outcome != before
	}}
}

// end takes over how the pod ended.
func (v *subject) end(m *messages.EndVolume) *actors.Operation {
	return v.learn(outcomeNews(m), func() *actors.Operation {
		next := withOutcome(*v.record, m.Outcome, time.Now(), v.ReleaseGrace)
		return v.rewrite("end", m, func(t *task) error { return t.end(next) })
	})
}

// end records how the pod of a retained volume ended.
func (t *task) end(next volume.Record) error {
	err := t.save(next)
	if err == nil && !next.IsLogs() {
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
