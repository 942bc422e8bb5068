package ephemeral

import (
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
)

// outlook is what the choice of the next retained volume to go depends on.
type outlook struct {
	now   time.Time
	index order
	// factor is the pressure factor, scarcer what there is less of. atBrink: the disk was measured to
	// be so full that volumes may go that are guaranteed. Where an operation found no room the factor
	// is 0, and that need not be so.
	factor  float64
	scarcer volume.Reason
	atBrink bool
	// mayGoEarly: the room that deletions make is not enough, as far as is known. mayBreak: it is not
	// even enough to leave the brink.
	mayGoEarly, mayBreak bool
	// futile: what went early has made no room, so that nothing goes early until again. trying: one
	// volume is on its way that shows whether it does now.
	// doubtful: what went early has made no room so far, and no guaranteed volume goes.
	futile, trying, doubtful bool
	again                    time.Time
	// full: no further deletion may begin now.
	full bool
	// retry is when the next volume is due that could not be deleted; zero when there is none.
	retry time.Time
}

// order is what a retained.Index says about the next volume to go.
type order interface {
	Over() (retained.Choice, bool)
	Surplus(now time.Time) (retained.Choice, bool)
	Repeated(now time.Time) (retained.Choice, bool)
	Early(now time.Time, factor float64, scarcer volume.Reason) (retained.Choice, bool)
	Guaranteed(scarcer volume.Reason) (retained.Choice, bool)
}

// decision is what to do next.
type decision struct {
	// delete: the chosen volume goes now, because of the cause. factor is the pressure factor then.
	delete bool
	chosen retained.Choice
	cause  cause
	factor float64
	// measure: how much room there is has to be measured first.
	measure bool
	// spare: nothing else is left, and that makes no room.
	spare bool
	// at is when to look again; zero when something else brings that about: a volume that goes to
	// sleep, the end of a deletion, a measurement.
	at time.Time
}

// cause is why a volume goes.
type cause uint8

const (
	timeIsOver cause = iota
	// tooMuch: its namespace retains more than it may.
	tooMuch
	// repeated: of its owner enough others stay.
	repeated
	roomIsNeeded
	// nothingElse: the disk is at its brink, and only volumes are left that are guaranteed.
	nothingElse
)

// reason is what a deletion is recorded with. A person wanted a released volume to go.
func (c cause) reason(r volume.Record, scarcer volume.Reason) volume.Reason {
	switch {
	case r.Hold.Kind == volume.Released && (c != timeIsOver || r.Hold.For < r.Lifespan):
		return volume.ForReleased
	case c == tooMuch:
		return volume.ForNamespace
	case c == repeated:
		return volume.ForOwner
	case c == roomIsNeeded:
		return scarcer
	case c == nothingElse:
		return volume.ForFloor
	}
	return volume.Expired
}

// next decides what to do. A volume whose time is over goes before one that something else makes go:
// its room costs nothing.
func next(o outlook) decision {
	over, ok := o.index.Over()
	if !ok {
		return decision{at: o.retry}
	}
	if !over.At.After(o.now) {
		return o.begin(over, timeIsOver)
	}
	if c, ok := o.index.Surplus(o.now); ok {
		return o.begin(c, tooMuch)
	}
	if c, ok := o.index.Repeated(o.now); ok {
		return o.begin(c, repeated)
	}
	at := over.At
	if o.futile {
		return o.wait(at)
	}
	if early, ok := o.index.Early(o.now, o.factor, o.scarcer); ok && !early.At.After(o.now) {
		return o.makeRoom(early, roomIsNeeded, o.mayGoEarly)
	} else if ok && early.At.Before(at) {
		at = early.At
	}
	if o.atBrink {
		if c, ok := o.index.Guaranteed(o.scarcer); ok && o.doubtful {
			return decision{spare: true, at: o.earliest(at, o.retry)}
		} else if ok {
			return o.makeRoom(c, nothingElse, o.mayBreak)
		}
	}
	return decision{at: o.earliest(at, o.retry)}
}

// wait decides while what goes early makes no room.
func (o *outlook) wait(at time.Time) decision {
	if o.trying {
		return decision{measure: true}
	}
	return decision{at: o.earliest(at, o.retry, o.again)}
}

// earliest returns the earliest time; those that are zero do not count.
func (o *outlook) earliest(at time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if !other.IsZero() && other.Before(at) {
			at = other
		}
	}
	return at
}

func (o *outlook) begin(c retained.Choice, why cause) decision {
	if o.full {
		return decision{}
	}
	return decision{delete: true, chosen: c, cause: why, factor: o.factor}
}

func (o *outlook) makeRoom(c retained.Choice, why cause, may bool) decision {
	if !may && !o.full {
		return decision{measure: true}
	}
	return o.begin(c, why)
}
