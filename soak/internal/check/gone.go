package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
	"github.com/katbox/katbox/soak/story"
)

// ringOfTombstones is how many tombstones a driver keeps. Of those that went before, it may
// remember nothing.
const ringOfTombstones = 10_000

// Buried is a volume that is gone, as the driver remembers it.
type Buried struct {
	ID, Namespace, Pod, PodUID string
	Reason                     string
}

// end is how the checker found that a volume went.
type end struct {
	volume *history.Volume
	// from is since when it was retained, by when it was gone.
	from, by time.Time
	// due is since when nothing but its time permitted it.
	due time.Time
	// lived is since when its lifespan may have been over, whatever people decided.
	lived time.Time
	// evicted says that only pressure permitted it, repeated that others of its owner may have, before its lifespan was over.
	evicted, repeated bool
}

// noteEnd remembers how a volume went, for CheckGone.
func (c *Checker) noteEnd(r *retained, by time.Time, evicted bool) {
	if !c.cfg.Tombstones {
		return
	}
	surplus := r.surplusNow().may
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, end{
		volume: r.volume, from: r.from, by: by, due: r.mayGoFrom(), lived: r.earliest, evicted: evicted,
		repeated: !surplus.IsZero() && !surplus.After(by),
	})
}

// CheckGone compares what the driver remembers of the volumes that are gone, the last
// one first, with what became of them. It is called at the end of a run. missing says
// that some have no tombstone yet: as long as the driver may be about to write them,
// it is to be asked again, and last is false.
func (c *Checker) CheckGone(list []Buried, last bool) (missing int) {
	byID := make(map[string][]Buried, len(list))
	for _, b := range list {
		byID[b.ID] = append(byID[b.ID], b)
	}
	if last {
		c.judgeLookers(list)
	}
	c.mu.Lock()
	ends := slices.Clone(c.ends)
	c.mu.Unlock()
	for _, e := range ends {
		stones := byID[e.volume.ID]
		switch {
		case len(stones) > 0:
		case len(list) >= ringOfTombstones, c.cfg.Timeline.During(e.from, e.by, workload.DiskFull, workload.NoInodes):
			continue // it was forgotten again, or there was no room for it
		case last:
			c.cfg.Findings.Add(history.Tombstones, e.volume, fmt.Sprintf("it was gone by %s, and the driver remembers nothing of it",
				story.Clock(e.by)))
			fallthrough
		default:
			missing++
			continue
		}
		if last {
			c.judgeTombstones(e, stones)
		}
	}
	return missing
}

// judgeTombstones says what is wrong with what the driver remembers of a volume.
func (c *Checker) judgeTombstones(e end, stones []Buried) {
	v := e.volume
	wrong := func(format string, args ...any) {
		c.cfg.Findings.Add(history.Tombstones, v, fmt.Sprintf(format, args...))
	}
	if len(stones) > 1 && !c.cameAgain(v) {
		wrong("it went once, and the driver remembers that %d times", len(stones))
	}
	b := stones[0]
	if b.Namespace != v.Namespace || b.Pod != v.PodName || b.PodUID != v.Pod {
		wrong("it is of pod %s/%s (%s), and its tombstone of %s/%s (%s)", v.Namespace, v.PodName, v.Pod, b.Namespace, b.Pod, b.PodUID)
	}
	if may := c.reasons(e); !slices.Contains(may, b.Reason) {
		wrong("it was gone by %s because of: %s; its tombstone says: %s", story.Clock(e.by), strings.Join(may, ", or "), b.Reason)
	}
}

// cameAgain reports whether a volume was published more than once after it was gone.
func (c *Checker) cameAgain(v *history.Volume) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.known[v.ID]
	return a != nil && a.again
}

// reasons are those for which a volume may have gone.
func (c *Checker) reasons(e end) (may []string) {
	removal, release := e.volume.Removal(), e.volume.Release()
	early := []string{"bytes", "inodes", "floor"}
	if c.cfg.Timeline.During(e.from, e.by, workload.DaemonKill, workload.DiskFull, workload.NoInodes) || len(e.volume.Troubles()) > 0 {
		may = append(may, "interrupted")
	}
	switch {
	case !removal.Done.IsZero() && e.due.After(removal.Done) && c.lowest(e.from, removal.Done) == 1:
		// Else it may have been going already: then the driver waits for that, and says that it is removed. What
		// it remembers is why it went.
		return append(may, "purged")
	case e.evicted:
		may = append(may, early...)
	default:
		may = append(may, "expired")
		if c.lowest(e.from, e.by) < 1 {
			may = append(may, early...)
		}
	}
	if !removal.Sent.IsZero() {
		may = append(may, "purged")
	}
	if !release.Sent.IsZero() {
		may = append(may, "released")
	}
	if e.repeated && !e.evicted {
		may = append(may, "owner")
	}
	soon := e.volume.OnFailure && !e.volume.Failed // its lifespan is as short as the grace of a release
	if (e.repeated || !release.Done.IsZero() && !soon) && !e.evicted && e.by.Before(e.lived) {
		may = slices.DeleteFunc(may, func(reason string) bool { return reason == "expired" })
	}
	return may
}
