package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// Choice is the volume that goes next. It is valid until the index changes.
type Choice struct {
	// At is from when on it may go, or another one in its place.
	At    time.Time
	entry *entry
}

// ID is that of the volume. It is only for a Choice whose time has come.
func (c Choice) ID() volume.ID { return c.entry.volumeID() }

// Over returns the volume whose time is over first, without pressure, and when that is: as
// [volume.Record.Until] says. A volume whose deletion a crash interrupted is due at once. Of several
// that are due at the same time it is the one that was unpublished first. ok is false when no volume is at rest.
func (x *Index) Over() (c Choice, ok bool) {
	var first candidate
	for of, h := range x.classes {
		if e := h.entries[0]; of.tier.ages() {
			first.improve(e, after(e.since, of.lifespan))
		} else {
			first.improve(e, e.end())
		}
	}
	return x.choice(first, first.entry)
}

// Early returns the volume that goes next when room is needed at the given time, under a pressure
// factor. At is when the first volume is due, as [lifespan.Due] says; pinned volumes are not, and of
// the released ones only what is due at factor 0. If At is not after now then a volume goes, though
// maybe not the one that is due: see [Index]. ok is false when no volume goes early.
//
// scarcer is [volume.ForInodes] if inodes are scarcer than bytes.
func (x *Index) Early(now time.Time, factor float64, scarcer volume.Reason) (c Choice, ok bool) {
	var due candidate
	for of, h := range x.classes {
		if e := h.entries[0]; of.tier.ages() {
			due.improve(e, after(e.since, lifespan.Shortened(of.lifespan, x.MinLifespan, factor)))
		}
	}
	if e := x.classes.head(released); e != nil && factor <= 0 {
		due.improve(e, e.since)
	}
	c, ok = x.choice(due, due.entry)
	if !ok || c.At.After(now) {
		return c, ok
	}
	if e := x.first(factor, x.clock.since(now)-int64(x.MinLifespan), scarcer); e != nil {
		c.entry = e
	}
	return c, true
}

// Guaranteed returns the volume that goes next when no volume is left that goes early, and the disk
// is all but full: one that is younger than MinLifespan, or the pinned one whose hold ends first.
// ok is false when there is none. scarcer is that of [Index.Early].
func (x *Index) Guaranteed(scarcer volume.Reason) (c Choice, ok bool) {
	e := x.first(0, none-1, scarcer)
	if e == nil {
		e = x.classes.head(pinned)
	}
	return x.unpublished(e)
}

// Surplus returns the volume that goes next because its namespace retains more than it may. Volumes
// that were not measured count as nothing, and those that are younger than MinLifespan at the given
// time, or pinned, do not go for this. ok is false when no namespace is known to retain too much.
func (x *Index) Surplus(now time.Time) (c Choice, ok bool) {
	if x.MaxRetained == nil {
		return Choice{}, false
	}
	return x.unpublished(x.tenants.surplus(x.MaxRetained, x.clock.since(now)-int64(x.MinLifespan)))
}

// Repeated returns the volume that goes next because of its owner enough others stay: those of the first and of the
// last pods, as PerOwner says. Volumes that are younger than MinLifespan at the given time, or pinned, do not go for
// this. ok is false when no owner is known to have more.
func (x *Index) Repeated(now time.Time) (c Choice, ok bool) {
	if x.PerOwner == nil {
		return Choice{}, false
	}
	return x.unpublished(x.owners.surplus(x.PerOwner, x.clock.since(now)-int64(x.MinLifespan)))
}

// Recheck lets [Index.Surplus] and [Index.Repeated] look at some namespaces and owners again. It is to be called now and
// then: limits may have changed, and volumes have become older.
func (x *Index) Recheck() {
	x.tenants.recheck()
	x.owners.recheck()
}

// first returns the first in order of the volumes that were unpublished at born or before and are
// not pinned; nil if there is none.
func (x *Index) first(factor float64, born int64, scarcer volume.Reason) *entry {
	if e := x.classes.head(released); e != nil {
		return e
	}
	if x.Fair {
		if e := x.tenants.ofHeaviest(born, scarcer); e != nil {
			return e
		}
	}
	var firsts [other + 1]candidate
	for of, h := range x.classes {
		if e := h.entries[0]; of.tier.ages() && e.since <= born {
			firsts[of.tier].improve(e, after(e.since, lifespan.Shortened(of.lifespan, x.MinLifespan, factor)))
		}
	}
	for _, c := range firsts[firstToAge:] {
		if c.entry != nil {
			return c.entry
		}
	}
	return nil
}

// candidate is the first of the entries that were compared. The zero candidate is none.
type candidate struct {
	entry *entry
	at    int64
}

// improve compares with an entry that is due at the given time.
func (c *candidate) improve(e *entry, at int64) {
	if c.entry == nil || at < c.at || at == c.at && before(e, c.entry) {
		*c = candidate{e, at}
	}
}

// choice returns the choice of e at the time of the candidate.
func (x *Index) choice(c candidate, e *entry) (Choice, bool) {
	if c.entry == nil {
		return Choice{}, false
	}
	after := time.Duration(c.at - c.entry.since)
	return Choice{At: x.clock.time(c.entry.since).Add(after), entry: e}, true
}

// unpublished returns the choice of e from its unpublish on; none if it is nil.
func (x *Index) unpublished(e *entry) (Choice, bool) {
	if e == nil {
		return Choice{}, false
	}
	return Choice{At: x.clock.time(e.since), entry: e}, true
}
