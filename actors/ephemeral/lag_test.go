package ephemeral

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// What the volumes of TestLaggingLetsNothingGoEarlier are made of.
const (
	lagLifespan = 2 * time.Hour
	// forever is for what goes only once its pod is known to be gone.
	forever = time.Duration(math.MaxInt64)
)

var (
	lagUnpublished = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	// The machine is up again when the first deadline is over.
	lagBoot = lagUnpublished.Add(lagLifespan / 2)
)

// TestLaggingLetsNothingGoEarlier walks the rule for what may be answered before it is on the disk: from each
// record that the disk may have, through all changes that may lag. Each record that it comes to may have been
// answered when the power goes; the start after that, which finds the older one, lets the data go no earlier than with
// the newer one.
func TestLaggingLetsNothingGoEarlier(t *testing.T) {
	all := lagRecords()
	may, when, lagged := map[*volume.Record][]*volume.Record{}, map[*volume.Record]time.Duration{}, map[string]bool{}
	for _, older := range all {
		when[older] = goes(older)
		for _, newer := range all {
			if volume.MayLag(older, newer) {
				may[older] = append(may[older], newer)
			}
		}
	}
	for _, older := range all {
		for _, newer := range reachedLagging(older, may) {
			lagged[fmt.Sprint(volume.PhaseOf(older), " to ", volume.PhaseOf(newer))] = true
			if waited, lagged := when[newer], when[older]; newer != nil && lagged < waited {
				t.Fatalf("answered %+v: after a power cut it goes at %v if that is on the disk, and at %v with %+v there", newer, waited, lagged, older)
			}
		}
	}
	for _, want := range []string{
		"Unknown to Publishing", "Unknown to Retained", "Publishing to Unknown", "Published to Unpublishing",
		"Published to Retained", "Unpublishing to Retained", "Retained to Retained",
	} {
		if !lagged[want] {
			t.Errorf("no change from %s may lag", want)
		}
	}
}

// TestWhatWaitsForTheDisk: a power cut that takes one of these changes would let something go earlier, or forget what
// a person has decided.
func TestWhatWaitsForTheDisk(t *testing.T) {
	live := volume.Record{ID: testID, Pod: testPod, Phase: volume.Published, Published: lagUnpublished.Add(-time.Hour),
		Targets: []volume.Target{{Path: "/a"}}, Terms: volume.Terms{Lifespan: lagLifespan}}
	with := func(r volume.Record, change func(*volume.Record)) *volume.Record {
		change(&r)
		return &r
	}
	retained := live.Retain(lagUnpublished, lagLifespan)
	attach := volume.Place{Pod: gonePod, ID: "csi-source"}
	leaving := with(live, func(r *volume.Record) {
		r.Phase, r.Targets = volume.Unpublishing, []volume.Target{{Path: "/a", Leaving: true}}
	})
	again := with(live, func(r *volume.Record) { r.Phase = volume.Publishing })
	for name, tt := range map[string]struct{ before, after *volume.Record }{
		"publish of a retained volume":        {&retained, again},
		"publish of a volume that is leaving": {leaving, again},
		"publish that attaches":               {nil, with(*again, func(r *volume.Record) { r.Attach = attach })},
		"undo of a publish of a retained one": {with(*again, func(r *volume.Record) { r.Published = lagUnpublished.Add(time.Second) }),
			&retained},
		"pin": {&retained, with(retained,
			func(r *volume.Record) { r.Hold = volume.Hold{Kind: volume.Pinned, For: time.Hour, By: "a", Why: "b"} })},
		"unpin":   {with(retained, func(r *volume.Record) { r.Hold.Kind = volume.Pinned }), &retained},
		"release": {&retained, with(retained, func(r *volume.Record) { r.Hold.Kind = volume.Released })},
		"owner of a released volume": {with(retained, func(r *volume.Record) { r.Hold.Kind = volume.Released }), with(retained,
			func(r *volume.Record) { r.Hold.Kind, r.Owner.Verdict = volume.Released, volume.Denied })},
		"prolong": {&retained, with(retained, func(r *volume.Record) { r.Lifespan += time.Hour })},
		"later unpublish": {&retained, with(retained,
			func(r *volume.Record) { r.Unpublished = r.Unpublished.Add(time.Hour) })},
		"outcome that was corrected": {with(retained, func(r *volume.Record) { r.Outcome = volume.Succeeded }), with(retained,
			func(r *volume.Record) { r.Outcome = volume.Failed })},
		"unpublish after an outcome corrected": {with(*leaving, func(r *volume.Record) { r.Outcome = volume.Succeeded }), with(retained,
			func(r *volume.Record) { r.Outcome = volume.Failed })},
		"deletion":                         {&retained, with(retained, func(r *volume.Record) { r.Phase = volume.Deleting })},
		"end of a deletion":                {with(retained, func(r *volume.Record) { r.Phase = volume.Deleting }), nil},
		"project given up":                 {with(live, func(r *volume.Record) { r.Project = 7 }), again},
		"undo of a publish with a project": {with(*again, func(r *volume.Record) { r.Project = 7 }), nil},
		"volume that is found mounted":     {nil, &live},
	} {
		if volume.MayLag(tt.before, tt.after) {
			t.Errorf("%s is answered before it is on the disk", name)
		}
	}
}

// reachedLagging returns what a volume may have become, record by record, while the disk has the older one. may has the
// changes that may lag.
func reachedLagging(older *volume.Record, may map[*volume.Record][]*volume.Record) []*volume.Record {
	reached, seen := []*volume.Record{older}, map[*volume.Record]bool{older: true}
	for next := 0; next < len(reached); next++ {
		for _, r := range may[reached[next]] {
			if !seen[r] {
				seen[r] = true
				reached = append(reached, r)
			}
		}
	}
	return reached[1:]
}

// lagRecords returns records that differ in all that the rule looks at; nil is none.
func lagRecords() []*volume.Record {
	all := []*volume.Record{nil}
	target := func(path string, leaving bool) volume.Target { return volume.Target{Path: path, Leaving: leaving} }
	for _, terms := range []volume.Terms{{}, {Lifespan: lagLifespan, LifespanSucceeded: lagLifespan / 4}} {
		for _, outcome := range []volume.Outcome{volume.OutcomeUnknown, volume.Succeeded, volume.Failed} {
			for _, project := range []uint32{0, 7, 8} {
				base := volume.Record{ID: testID, Pod: testPod, Published: lagUnpublished.Add(-time.Hour), Terms: terms, Outcome: outcome,
					Project: project}
				for _, targets := range [][]volume.Target{
					{target("/a", false)}, {target("/a", true)}, {target("/a", true), target("/b", false)},
					{target("/a", false), target("/b", false)}, {target("/a", true), target("/b", true)}, {target("/b", false)},
				} {
					live := base
					live.Targets = targets
					for _, attach := range []volume.Place{{}, {Pod: gonePod, ID: "csi-source"}} {
						live.Attach = attach
						for _, phase := range []volume.Phase{volume.Publishing, livePhase(live)} {
							one := live
							one.Phase = phase
							all = append(all, &one)
						}
					}
				}
				for _, lifespan := range []time.Duration{lagLifespan / 4, lagLifespan, 2 * lagLifespan} {
					if (terms == volume.Terms{}) {
						lifespan = min(lifespan, lagLifespan) // the administrator's
					} else if outcome == volume.Succeeded {
						lifespan = terms.LifespanSucceeded
					}
					for _, since := range []time.Duration{-2 * time.Hour, -time.Minute, 0} {
						for _, hold := range []volume.Hold{{}, {Kind: volume.Pinned, For: 3 * lagLifespan}, {Kind: volume.Released}} {
							kept := base.Retain(lagUnpublished.Add(since), lifespan)
							kept.Hold = hold
							deleting := kept
							deleting.Phase = volume.Deleting
							all = append(all, &kept, &deleting)
						}
					}
				}
			}
		}
	}
	return all
}

// goes returns when the data of a volume may go at the earliest, after the time of its unpublish, when a start finds this
// record after a power cut.
func goes(r *volume.Record) time.Duration {
	switch {
	case r == nil:
		// Its directory is found. Where its pod is there, the kubelet publishes it again; else it is kept for what the
		// administrator has set, which is what is promised of a volume of which nothing had reached the disk.
		return forever
	case r.Phase.Live():
		found := newRecovery(nil, "/kubelet/pods", func(volume.Record) { panic("asleep") })
		found.rebooted = true
		found.add(*r)
		found.addLater()
		if found.awake[0].Phase != volume.Unpublishing || r.Attach != (volume.Place{}) {
			return forever
		}
		lifespan := lagLifespan // the administrator's
		if r.Terms != (volume.Terms{}) {
			lifespan = r.Terms.Kept(r.Outcome, 0)
		}
		return lagBoot.Add(lifespan).Sub(lagUnpublished)
	case r.Phase == volume.Deleting:
		return 0
	}
	return max(r.Until().Sub(lagUnpublished), 0)
}
