package check

import (
	"maps"
	"slices"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

const (
	// ofOwner is how a volume is held of whose owner enough others stay.
	ofOwner = "of an owner"
	// learns is how long a driver may take to learn how a pod has ended, decides how long from when it decides that a volume goes
	// until that is gone, and decidesLate how long while the machine or the driver is held up.
	learns      = time.Second
	decides     = time.Second
	decidesLate = 15 * time.Second
	// siblingMemory is how long a volume is remembered that is gone.
	siblingMemory = time.Minute
)

// ownerKey tells owners apart.
type ownerKey struct{ namespace, owner string }

// sibling is a volume of a pod that has an owner. A driver counts it while it retains it.
type sibling struct {
	volume *history.Volume
	// retained is how the checker follows it; nil before that. over says that it does no more.
	retained *retained
	over     bool
	// gone is by when its data was gone; zero if it was not seen to be.
	gone time.Time
}

// surplus says since when a volume may go because enough others of its owner stay, and since when it has to. Both may be zero.
type surplus struct{ may, must time.Time }

// expectOwned remembers a volume of a pod that has an owner. Its caller has the lock.
func (c *Checker) expectOwned(v *history.Volume) {
	if v.Owner == "" || c.cfg.MaxPerOwner.Last == 0 {
		return
	}
	key, now := ownerKey{v.Namespace, v.Owner}, time.Now()
	c.owned[key] = append(slices.DeleteFunc(c.owned[key], func(s *sibling) bool {
		return !s.gone.IsZero() && now.Sub(s.gone) > siblingMemory
	}), &sibling{volume: v})
}

// changeSibling changes what is known of a volume that has an owner. Its caller has the lock.
func (c *Checker) changeSibling(v *history.Volume, change func(*sibling)) {
	for _, s := range c.owned[ownerKey{v.Namespace, v.Owner}] {
		if s.volume == v {
			change(s)
		}
	}
}

// noteGone notes that the data of a volume was gone by a time.
func (c *Checker) noteGone(v *history.Volume, by time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changeSibling(v, func(s *sibling) { s.gone = by })
}

// siblings returns the volumes of the owner of a volume that were not gone before a time.
func (c *Checker) siblings(v *history.Volume, after time.Time) (all []sibling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.owned[ownerKey{v.Namespace, v.Owner}] {
		if s.gone.IsZero() || !s.gone.Before(after) {
			now := *s
			now.over = s.retained != nil && s.retained.over
			all = append(all, now)
		}
	}
	return all
}

// span is when the driver began to retain a volume: at the first moment at the earliest, and at the last one at the latest. ok is
// false if it has not, by now.
func (s sibling) span(now time.Time) (first, last time.Time, ok bool) {
	switch sent := s.volume.FirstSent(history.Unpublish); {
	case s.retained != nil:
		return s.retained.from, s.retained.to, true
	case !sent.IsZero():
		return sent, now, true
	}
	for _, t := range s.volume.Troubles() {
		if t.Kind == workload.PodRemoved {
			return t.From, now, true
		}
	}
	return first, last, false
}

// weigh finds out whether of a volume's owner enough others stay, for it to go. A driver counts the pods that ended in the same way, as
// far as it knows that. Those of which it may not know it, or not know the owner, it may count or not: the volume may go if that
// is so in one of these worlds, and has to if it is so in all.
func (c *Checker) weigh(r *retained, now time.Time) {
	v, most := r.volume, c.cfg.MaxPerOwner
	if most.Last == 0 || v == nil || v.Owner == "" || v.Owning().Sent.IsZero() {
		return
	}
	c.mu.Lock()
	lastWhole := r.lastWhole
	c.mu.Unlock()
	since := lastWhole.Add(-decides)
	if c.cfg.Timeline.During(since, now, workload.DaemonKill, workload.SlowDisk, workload.MachineSlow) {
		since = lastWhole.Add(-decidesLate)
	}
	all := c.siblings(v, since)
	// Of pods that may count: those that may have ended later, and those that may have ended earlier.
	after, before, both := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range all {
		first, last, ok := s.span(now)
		if pod := s.volume.Pod; ok && pod != v.Pod && c.together(v, s.volume, since, now) {
			if !last.Before(r.from) {
				after[pod], both[pod] = true, true
			}
			if !first.After(r.to) {
				before[pod], both[pod] = true, true
			}
		}
	}
	old, next := r.surplusNow(), surplus{}
	if len(after) >= most.Last && len(before) >= most.First && len(both) >= most.Last+most.First {
		next.may = old.may
		if next.may.IsZero() {
			next.may = lastWhole
		}
		// While it is pinned or attached it stays.
		next.may = later(next.may, r.attachedUntil())
		if pin := v.Pin(); !pin.Done.IsZero() {
			next.may = later(next.may, pin.Until)
		}
		if next.may.After(now) {
			next.may = time.Time{}
		}
	}
	if !next.may.IsZero() {
		next.must = c.tooMuchSince(r, all, after, now)
	}
	r.surplus.Store(&next)
}

// tooMuchSince is since when enough other pods stay beyond doubt; zero if that is not so. What is there now was there all the time
// since it was retained. Some pods may have ended later than the volume's own.
func (c *Checker) tooMuchSince(r *retained, all []sibling, mayBeLater map[string]bool, now time.Time) time.Time {
	v := r.volume
	from, to := r.from, r.to
	for _, s := range all { // the volumes of a pod stay together
		if s.volume.Pod == v.Pod && s.volume != v {
			first, last, ok := s.span(now)
			if !ok {
				return time.Time{} // it is still to come
			}
			from, to = earlier(from, first), later(to, last)
		}
	}
	since := c.countsSince(v, now)
	if since.IsZero() || r.abandoned || c.obstructed(v) || !v.Release().Sent.IsZero() || !v.Removal().Sent.IsZero() {
		return time.Time{}
	}
	after, before := map[string]time.Time{}, map[string]time.Time{}
	for _, s := range all {
		w, pod := s.retained, s.volume.Pod
		if w == nil || s.over || w.abandoned || pod == v.Pod || !c.knownTogether(v, s.volume) {
			continue
		}
		into := before
		switch {
		case w.from.After(to):
			into = after
		case !w.to.Before(from) || mayBeLater[pod]:
			continue
		}
		if at := c.staysSince(w, now); !at.IsZero() && (into[pod].IsZero() || at.Before(into[pod])) {
			into[pod] = at
		}
	}
	most := c.cfg.MaxPerOwner
	if len(after) < most.Last || len(before) < most.First {
		return time.Time{}
	}
	for _, of := range []struct {
		pods map[string]time.Time
		most int
	}{{after, most.Last}, {before, most.First}} {
		for _, at := range slices.SortedFunc(maps.Values(of.pods), time.Time.Compare)[:of.most] {
			since = later(since, at)
		}
	}
	return since
}

// staysSince is since when the driver keeps a volume, and knows what counts of it; zero if that is not beyond doubt now.
func (c *Checker) staysSince(r *retained, now time.Time) time.Time {
	v := r.volume
	if !now.Before(r.mayGoFrom()) || !v.Removal().Sent.IsZero() || len(v.Troubles()) > 0 {
		return time.Time{}
	}
	since := c.countsSince(v, now)
	if found, _ := c.cfg.Look(v, v.Data); since.IsZero() || found != story.Whole {
		return time.Time{}
	}
	return since
}

// countsSince is since when the driver knows beyond doubt that it has retained a volume, who owns its pod, and how that ended;
// zero if it may not know it.
func (c *Checker) countsSince(v *history.Volume, now time.Time) time.Time {
	owning, until := v.Owning(), v.LastOK(history.Unpublish)
	// As long as it was published, what was confirmed was in the driver's memory alone.
	if owning.To.IsZero() || until.IsZero() || c.cfg.Timeline.During(owning.From, until, workload.DaemonKill) {
		return time.Time{}
	}
	since := later(owning.To, until)
	if c.cfg.Outcomes {
		if v.ToldAt().IsZero() || !c.knowsEnd(v, now, now) {
			return time.Time{}
		}
		since = later(since, v.ToldAt().Add(learns))
	}
	return since
}

// knowsEnd reports whether the driver knows between two times beyond doubt how the pod of a volume ended, of which it was told.
func (c *Checker) knowsEnd(v *history.Volume, from, to time.Time) bool {
	told := v.ToldAt()
	return told.Add(learns).Before(from) && !v.PublishedSince(told) && !c.cfg.Timeline.During(told.Add(-learns), to, workload.DaemonKill,
		workload.DiskFull, workload.NoInodes, workload.SlowDisk, workload.MachineSlow)
}

// knownTogether reports whether the pods of two volumes count together, if the driver knows how they ended.
func (c *Checker) knownTogether(v, w *history.Volume) bool {
	return !c.cfg.Outcomes || v.Failed == w.Failed
}

// together reports whether the pods of two volumes may have counted together at some time between the two: as pods that
// ended in the same way, or as pods of which the driver did not know it.
func (c *Checker) together(v, w *history.Volume, from, to time.Time) bool {
	if w.Owning().Sent.IsZero() {
		return false
	}
	told := func(v *history.Volume) bool { return !v.ToldAt().IsZero() }
	unknown := func(v *history.Volume) bool { return !told(v) || !c.knowsEnd(v, from, to) }
	return c.knownTogether(v, w) && (!c.cfg.Outcomes || told(v) && told(w)) || unknown(v) && unknown(w)
}

// surplusNow is what was found last.
func (r *retained) surplusNow() surplus {
	if s := r.surplus.Load(); s != nil {
		return *s
	}
	return surplus{}
}

// ofOwner are the events of a volume that goes because enough others of its owner stay.
func (r *retained) ofOwner() (events []story.Event) {
	s := r.surplusNow()
	if !s.may.IsZero() {
		events = append(events, story.Event{At: s.may, What: story.LetGo, Text: ofOwner})
	}
	if !s.must.IsZero() {
		events = append(events, story.Event{At: s.must, What: story.Decided, Text: ofOwner})
	}
	return events
}

// repeated reports whether a volume may have gone because enough others of its owner stay, by a time before its own deadline.
func (r *retained) repeated(by time.Time) bool {
	return !r.surplusNow().may.IsZero() && by.Before(r.earliest)
}
