package check

import (
	"fmt"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// Listed is a volume as a list shows it. Empty fields are not known to the driver.
type Listed struct {
	ID, Namespace, Pod, PodUID, Volume string
	// Retained says that the list calls it so.
	Retained bool
	// RetainedAt and ExpiresAt are times of the driver's wall clock.
	RetainedAt, ExpiresAt time.Time
}

// Listing is a list of retained volumes that is under way, page after page.
type Listing struct {
	checker   *Checker
	namespace string
	from      time.Time
	// retained are the volumes that belong into the list, if they stay until its
	// end; published those that must not be in it.
	retained  []*retained
	published map[string]*published
}

// BeginList says that a reader is about to ask for the first page of the retained
// volumes of a namespace, or of all if it is empty.
func (c *Checker) BeginList(namespace string) *Listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &Listing{checker: c, namespace: namespace, from: time.Now(), published: make(map[string]*published)}
	for _, r := range c.retained.all {
		if namespace == "" || r.volume.Namespace == namespace {
			l.retained = append(l.retained, r)
		}
	}
	for v, p := range c.byVolume {
		l.published[v.ID] = p
	}
	return l
}

// End judges a list, all of whose pages came. Where the wall clock of the driver stepped meanwhile a page may begin
// elsewhere than the one before ended, and two pages tell times by two clocks: such a list says nothing.
func (l *Listing) End(items []Listed) {
	if l.checker.cfg.Timeline.During(l.from, time.Now(), workload.ClockStep) {
		return
	}
	seen := make(map[string]bool)
	for i, item := range items {
		if seen[item.ID] {
			l.object(l.checker.volume(item.ID), "the list has it twice")
			continue
		}
		seen[item.ID] = true
		if i > 0 && item.RetainedAt.After(items[i-1].RetainedAt) {
			l.object(l.checker.volume(item.ID), fmt.Sprintf("it was retained at %s and comes after volume %s, retained at %s; the newest come first",
				item.RetainedAt, items[i-1].ID, items[i-1].RetainedAt))
		}
		l.judge(item)
	}
	for _, r := range l.retained {
		if !seen[r.volume.ID] && l.checker.certain(r) {
			l.object(r.volume, "it is retained all the time, and the list does not have it")
		}
	}
}

func (c *Checker) volume(id string) *history.Volume {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[id]; a != nil {
		return a.volume
	}
	return nil
}

// object reports something that is wrong with the list.
func (l *Listing) object(v *history.Volume, what string) { l.objectAs(history.ListsTrue, v, what) }

func (l *Listing) objectAs(broken history.Promise, v *history.Volume, what string) {
	of := "all namespaces"
	if l.namespace != "" {
		of = "namespace " + l.namespace
	}
	what = fmt.Sprintf("the list of %s that began at %s: %s", of, story.Clock(l.from), what)
	l.checker.cfg.Findings.Add(broken, v, what)
}

// judge says what is wrong with one volume of the list.
func (l *Listing) judge(item Listed) {
	c := l.checker
	c.mu.Lock()
	a := c.known[item.ID]
	var gone time.Time
	var r *retained
	stillPublished, again := false, false
	if a != nil {
		gone, r, again = a.gone, a.retained, a.again
		p := l.published[item.ID]
		stillPublished = p != nil && c.byVolume[a.volume] == p
	}
	c.mu.Unlock()
	if a == nil {
		l.object(nil, fmt.Sprintf("it has volume %s, which is none of this run or was gone long ago", item.ID))
		return
	}
	v := a.volume
	switch {
	case !item.Retained:
		l.object(v, "the list says that it is in another phase than Retained")
	case stillPublished:
		l.object(v, "it is published all the time, and the list has it")
	case l.namespace != "" && v.Namespace != l.namespace:
		l.object(v, fmt.Sprintf("the volume is of namespace %s", v.Namespace))
	case !gone.IsZero() && gone.Add(staleAllowance).Before(l.from) && len(v.Troubles()) == 0:
		l.object(v, fmt.Sprintf("its data is gone since %s, and the list has it", story.Clock(gone)))
	case r != nil && again && r.from.After(l.from):
		// The list may have it from before it was published again.
	case r != nil:
		l.judgeRetained(r, item)
	}
}

// judgeRetained compares what the list says of a volume with what it is.
func (l *Listing) judgeRetained(r *retained, item Listed) {
	v, c := r.volume, l.checker
	got := Listed{Namespace: item.Namespace, Pod: item.Pod, PodUID: item.PodUID}
	if want := (Listed{Namespace: v.Namespace, Pod: v.PodName, PodUID: v.Pod}); got != want || item.Volume != "" && item.Volume != v.Name {
		l.object(v, fmt.Sprintf("it is volume %s of pod %s/%s (%s), and in the list volume %s of pod %s/%s (%s)",
			v.Name, v.Namespace, v.PodName, v.Pod, item.Volume, item.Namespace, item.Pod, item.PodUID))
		return
	}
	// People read both by the wall clock that the driver has now, whatever it was when the volume was retained.
	broken, offset := history.ListsTrue, c.cfg.Timeline.Offset()
	if c.cfg.Timeline.During(r.from, l.from, workload.ClockStep) {
		broken = history.Monotonic
	}
	at, expires := item.RetainedAt.Add(-offset), item.ExpiresAt.Add(-offset)
	if at.Before(r.from.Add(-usualLateness)) || at.After(r.to.Add(usualLateness)) {
		l.objectAs(broken, v, fmt.Sprintf("it was retained between %s and %s, and the list says %s",
			story.Clock(r.from), story.Clock(r.to), story.Clock(at)))
		return
	}
	// Pressure makes it earlier.
	if c.lowest(r.from, time.Now()) < 1 {
		return
	}
	if r.attachment().By != nil {
		return // while it is attached it has none
	}
	// A person may have decided meanwhile.
	from, to := earlier(r.earliest, r.mayGoFrom()), later(r.deadline, r.dueAt())
	if expires.Before(from.Add(-usualLateness)) || expires.After(to.Add(usualLateness)) {
		l.objectAs(broken, v, fmt.Sprintf("its deadline is between %s and %s, and the list says %s",
			story.Clock(from), story.Clock(to), story.Clock(expires)))
	}
}
