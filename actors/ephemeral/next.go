package ephemeral

import "time"

// outlook is what the choice of the next retained volume to go depends on.
type outlook struct {
	now time.Time
	// deadline returns the earliest deadline under a pressure factor; ok is false when no volume has one.
	deadline func(factor float64) (at time.Time, ok bool)
	// factor is the pressure factor.
	factor float64
	// mayGoEarly: the room that deletions make is not enough, as far as is known.
	mayGoEarly bool
	// full: no further deletion may begin now.
	full bool
	// retry is when the next volume is due that could not be deleted; zero when there is none.
	retry time.Time
}

// decision is what to do next.
type decision struct {
	// delete: the volume with the earliest deadline under factor goes now. expired: its lifespan is
	// over, and no pressure makes it go.
	delete, expired bool
	factor          float64
	// measure: how much room there is has to be measured first.
	measure bool
	// at is when to look again; zero when something else brings that about: a volume that goes to
	// sleep, the end of a deletion, a measurement.
	at time.Time
	// none: no volume is left that could go.
	none bool
}

// next decides what to do. A volume that has expired goes before one that pressure makes go: its
// room costs nothing.
func next(o outlook) decision {
	due, ok := o.deadline(1)
	if !ok {
		return decision{none: true, at: o.retry}
	}
	d := decision{factor: 1, expired: !due.After(o.now)}
	if !d.expired {
		d.factor = o.factor
		due, _ = o.deadline(d.factor)
	}
	switch {
	case due.After(o.now):
		if !o.retry.IsZero() && o.retry.Before(due) {
			due = o.retry
		}
		return decision{at: due}
	case o.full:
		return decision{}
	case !d.expired && !o.mayGoEarly:
		return decision{measure: true}
	}
	d.delete = true
	return d
}
