package retained

import (
	"time"

	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
)

// Choice is the volume that goes next. It is valid until the queue changes.
type Choice struct {
	// At is from when on it may go, or another one in its place.
	At time.Time
	number
}

// TakeChosen removes the volume that goes next, and returns what was known of it. It is only for a
// Choice whose time has come.
func (q *Queue) TakeChosen(c Choice) Asleep { return q.take(c.number) }

// Over returns the volume whose time is over first, without pressure, and when that is: as
// [volume.Record.Until] says. A volume whose deletion a crash interrupted is due at once. Of several
// that are due at the same time it is the one that was unpublished first. ok is false when all
// volumes that are left are postponed.
func (q *Queue) Over() (c Choice, ok bool) {
	var first candidate
	for of, h := range q.classes {
		n := h.numbers[0]
		if of.tier.ages() {
			first.improve(&q.table, n, after(q.table.entry(n).since, of.lifespan))
		} else {
			first.improve(&q.table, n, q.table.end(n))
		}
	}
	return q.choice(first, first.number)
}

// Early returns the volume that goes next when room is needed at the given time, under a pressure
// factor. At is when the first volume is due, as [lifespan.Due] says; pinned volumes are not, and of
// the released ones only what is due at factor 0. If At is not after now then a volume goes, though
// maybe not the one that is due: see [Queue]. ok is false when no volume goes early.
//
// scarcer is [volume.ForInodes] if inodes are scarcer than bytes.
func (q *Queue) Early(now time.Time, factor float64, scarcer volume.Reason) (c Choice, ok bool) {
	var due candidate
	for of, h := range q.classes {
		if n := h.numbers[0]; of.tier.ages() {
			due.improve(&q.table, n, after(q.table.entry(n).since, lifespan.Shortened(of.lifespan, q.MinLifespan, factor)))
		}
	}
	if n := q.classes.head(released); n != 0 && factor <= 0 {
		due.improve(&q.table, n, q.table.entry(n).since)
	}
	c, ok = q.choice(due, due.number)
	if !ok || c.At.After(now) {
		return c, ok
	}
	if n := q.first(factor, q.table.clock.since(now)-int64(q.MinLifespan), scarcer); n != 0 {
		c.number = n
	}
	return c, true
}

// Guaranteed returns the volume that goes next when no volume is left that goes early, and the disk
// is all but full: one that is younger than MinLifespan, or the pinned one whose hold ends first.
// ok is false when there is none. scarcer is that of [Queue.Early].
func (q *Queue) Guaranteed(scarcer volume.Reason) (c Choice, ok bool) {
	n := q.first(0, none-1, scarcer)
	if n == 0 {
		n = q.classes.head(pinned)
	}
	if n == 0 {
		return Choice{}, false
	}
	return Choice{At: q.table.unpublished(n), number: n}, true
}

// Surplus returns the volume that goes next because its namespace retains more than it may. Volumes
// that were not measured count as nothing, and those that are younger than MinLifespan at the given
// time, or pinned, do not go for this. ok is false when no namespace is known to retain too much.
func (q *Queue) Surplus(now time.Time) (c Choice, ok bool) {
	if q.MaxRetained == nil {
		return Choice{}, false
	}
	n := q.tenants.surplus(q.MaxRetained, q.table.clock.since(now)-int64(q.MinLifespan))
	if n == 0 {
		return Choice{}, false
	}
	return Choice{At: q.table.unpublished(n), number: n}, true
}

// Recheck lets [Queue.Surplus] look at some namespaces again. It is to be called now and then: limits
// may have changed, and volumes have become older.
func (q *Queue) Recheck() { q.tenants.recheck() }

// first returns the first in order of the volumes that were unpublished at born or before and are
// not pinned; 0 if there is none.
func (q *Queue) first(factor float64, born int64, scarcer volume.Reason) number {
	if n := q.classes.head(released); n != 0 {
		return n
	}
	if q.Fair {
		if n := q.tenants.ofHeaviest(born, scarcer); n != 0 {
			return n
		}
	}
	var firsts [other + 1]candidate
	for of, h := range q.classes {
		n := h.numbers[0]
		if since := q.table.entry(n).since; of.tier.ages() && since <= born {
			firsts[of.tier].improve(&q.table, n, after(since, lifespan.Shortened(of.lifespan, q.MinLifespan, factor)))
		}
	}
	for _, c := range firsts[succeeded:] {
		if c.number != 0 {
			return c.number
		}
	}
	return 0
}

// candidate is the first of the entries that were compared. The zero candidate is none.
type candidate struct {
	number
	at int64
}

// improve compares with an entry that is due at the given time.
func (c *candidate) improve(t *table, n number, at int64) {
	if c.number == 0 || at < c.at || at == c.at && t.before(n, c.number) {
		*c = candidate{n, at}
	}
}

// choice returns the choice of n at the time of the candidate.
func (q *Queue) choice(c candidate, n number) (Choice, bool) {
	if c.number == 0 {
		return Choice{}, false
	}
	after := time.Duration(c.at - q.table.entry(c.number).since)
	return Choice{At: q.table.unpublished(c.number).Add(after), number: n}, true
}
