package check

import (
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/story"
)

// calls are those that the kubelet sent for a volume, and what succeeded of them.
func calls(v *history.Volume) (events []story.Event) {
	for _, call := range []struct {
		method history.Method
		sent   story.Verb
		done   story.Verb
	}{{history.Publish, story.Publish, story.Published}, {history.Unpublish, story.Unpublish, story.Retained}} {
		if at := v.FirstSent(call.method); !at.IsZero() {
			events = append(events, story.Event{At: at, What: call.sent})
		}
		if at := v.LastOK(call.method); !at.IsZero() {
			events = append(events, story.Event{At: at, What: call.done})
		}
	}
	return events
}

// told is the story of such events.
func (c *Checker) told(events ...story.Event) *story.Story {
	s := story.New(c.cfg.Tolerance)
	for _, e := range events {
		s.Add(e)
	}
	return s
}

// tellLook goes on with what a look found that is over now. The error says more.
func tellLook(s *story.Story, from time.Time, found story.Verb, err error) {
	e := story.Event{At: from, Until: time.Now(), What: found}
	if err != nil {
		e.Text = err.Error()
	}
	s.Add(e)
}

// tellMount goes on with whether a volume is mounted at its target, and reports that.
func (c *Checker) tellMount(s *story.Story, v *history.Volume) (mounted bool, err error) {
	from := time.Now()
	mounted, err = c.isMounted(v.Target)
	switch {
	case err != nil:
	case mounted:
		tellLook(s, from, story.Shown, nil)
	default:
		tellLook(s, from, story.Missing, nil)
	}
	return mounted, err
}

// story is what is known of a retained volume by now, as package story judges it, with
// what pods that attach it may have done or without.
func (r *retained) story(attachments bool) *story.Story {
	events := []story.Event{{At: r.from, What: story.Publish}}
	if !r.empty {
		events = append(events, story.Event{At: r.from, What: story.Published}, story.Event{At: r.from, What: story.Wrote, N: 1})
	}
	if r.abandoned {
		events = append(events, story.Event{At: r.from, Until: r.to, What: story.Forget, Lifespan: r.earliest.Sub(r.from)})
	} else {
		for _, lifespan := range []time.Duration{r.earliest.Sub(r.from), r.deadline.Sub(r.to)} {
			events = append(events, story.Event{At: r.from, What: story.Unpublish, Lifespan: lifespan})
		}
		events = append(events, story.Event{At: r.to, What: story.Retained})
	}
	if r.volume != nil {
		decided := slices.Concat(r.decisions(), r.attachments(attachments), r.ofOwner())
		slices.SortStableFunc(decided, func(a, b story.Event) int { return a.At.Compare(b.At) })
		events = append(events, decided...)
	}
	s := story.New(r.tolerance)
	for _, e := range events {
		s.Add(e)
	}
	return s
}

// decisions are those of people.
func (r *retained) decisions() (events []story.Event) {
	const pinned, released = "pinned", "released"
	pin, release := r.volume.Pin(), r.volume.Release()
	if !pin.Sent.IsZero() {
		events = append(events, story.Event{At: pin.Sent, What: story.Decide, Text: pinned, Lifespan: pin.Until.Sub(pin.Sent)})
	}
	// With a release under way it is not known which of the two came last.
	if !pin.Done.IsZero() && (release.Sent.IsZero() || pin.Done.Before(release.Sent)) {
		events = append(events, story.Event{At: pin.Done, What: story.Decided, Text: pinned})
	}
	if !release.Sent.IsZero() {
		events = append(events, story.Event{At: release.Sent, What: story.LetGo, Text: released, Lifespan: r.grace})
	}
	if !release.Done.IsZero() {
		events = append(events, story.Event{At: release.Done, What: story.Decided, Text: released})
	}
	return events
}

// attachments are what a pod that attaches the volume did.
func (r *retained) attachments(wanted bool) (events []story.Event) {
	a := r.attachment()
	if a.By == nil || !wanted || a.By.FirstSent(history.Publish).IsZero() {
		return nil
	}
	events = append(events, story.Event{At: a.By.FirstSent(history.Publish), What: story.Attach})
	if done := a.By.LastOK(history.Publish); !done.IsZero() {
		events = append(events, story.Event{At: done, What: story.Attached})
	}
	if sent := a.By.FirstSent(history.Unpublish); !sent.IsZero() {
		events = append(events, story.Event{At: sent, What: story.Detach, Lifespan: r.grace})
	}
	if a.Ended.IsZero() {
		return events
	}
	last := r.grace
	if r.volume.Release().Done.IsZero() {
		// A lifespan that is prolonged is one of whole minutes.
		needs := a.Ended.Sub(r.from) + r.grace
		last = r.to.Add((needs + time.Minute - 1).Truncate(time.Minute)).Sub(a.Ended)
	}
	return append(events, story.Event{At: a.Ended, What: story.Detach, Lifespan: last}, story.Event{At: a.Ended, What: story.Detached})
}

// permitted is the first moment at which data may go without pressure, by its lifespan
// and what people decided.
func (r *retained) permitted() time.Time { return r.story(false).Earliest() }

// mayGoFrom is the first moment at which data may go without pressure.
func (r *retained) mayGoFrom() time.Time { return orNever(r.story(true).Earliest()) }

// dueAt is the last moment that the driver can have meant.
func (r *retained) dueAt() time.Time { return orNever(r.story(true).Latest()) }

// orNever stands for a moment that is not known with one beyond the run.
func orNever(at time.Time) time.Time {
	if at.IsZero() {
		return time.Now().Add(never)
	}
	return at
}
