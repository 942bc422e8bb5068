package ephemeral

import (
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/retained"
)

// fakeOrder is an index that says what the test says. A zero Choice is none.
type fakeOrder struct{ over, surplus, repeated, early, guaranteed retained.Choice }

func said(c retained.Choice) (retained.Choice, bool) { return c, !c.At.IsZero() }

func (f fakeOrder) Over() (retained.Choice, bool)              { return said(f.over) }
func (f fakeOrder) Surplus(time.Time) (retained.Choice, bool)  { return said(f.surplus) }
func (f fakeOrder) Repeated(time.Time) (retained.Choice, bool) { return said(f.repeated) }
func (f fakeOrder) Guaranteed(volume.Reason) (retained.Choice, bool) {
	return said(f.guaranteed)
}

func (f fakeOrder) Early(time.Time, float64, volume.Reason) (retained.Choice, bool) {
	return said(f.early)
}

// TestNext: what goes next, by the time, the pressure and what is under way.
func TestNext(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := func(hours time.Duration) time.Time { return now.Add(hours * time.Hour) }
	at := func(hours time.Duration) retained.Choice { return retained.Choice{At: in(hours)} }
	gone := func(hours time.Duration, why cause, factor float64) decision {
		return decision{delete: true, chosen: at(hours), cause: why, factor: factor}
	}
	for _, tt := range []struct {
		name  string
		index fakeOrder
		o     outlook
		want  decision
	}{
		{"no volume", fakeOrder{}, outlook{}, decision{}},
		{"no volume but one to be tried again", fakeOrder{}, outlook{retry: in(3)}, decision{at: in(3)}},
		{"not due", fakeOrder{over: at(2), early: at(2)}, outlook{factor: 1, mayGoEarly: true}, decision{at: in(2)}},
		{
			"not due, and one to be tried again before", fakeOrder{over: at(2), early: at(2)},
			outlook{factor: 1, retry: in(1)}, decision{at: in(1)},
		},
		{
			"not due, and one to be tried again later", fakeOrder{over: at(2), early: at(2)},
			outlook{factor: 1, retry: in(3)}, decision{at: in(2)},
		},
		{"due now", fakeOrder{over: at(0), early: at(0)}, outlook{factor: 1}, gone(0, timeIsOver, 1)},
		{
			"over, whatever else there is", fakeOrder{over: at(-1), surplus: at(-2), early: at(-5)},
			outlook{}, gone(-1, timeIsOver, 0),
		},
		{"over, and enough are being deleted", fakeOrder{over: at(-1)}, outlook{factor: 1, full: true}, decision{}},
		{"too much", fakeOrder{over: at(5), surplus: at(-2), early: at(-1)}, outlook{factor: 1}, gone(-2, tooMuch, 1)},
		{
			"too much, and enough are being deleted", fakeOrder{over: at(5), surplus: at(-2)},
			outlook{factor: 1, full: true}, decision{},
		},
		{
			"too much before too many of an owner", fakeOrder{over: at(5), surplus: at(-2), repeated: at(-3)},
			outlook{factor: 1}, gone(-2, tooMuch, 1),
		},
		{"too many of an owner", fakeOrder{over: at(5), repeated: at(-2), early: at(-3)}, outlook{factor: 1}, gone(-2, repeated, 1)},
		{
			"too many of an owner, while what goes early makes no room", fakeOrder{over: at(5), repeated: at(-2)},
			outlook{futile: true}, gone(-2, repeated, 0),
		},
		{
			"too many of an owner, and enough are being deleted", fakeOrder{over: at(5), repeated: at(-2)},
			outlook{factor: 1, full: true}, decision{},
		},
		{
			"room is lacking", fakeOrder{over: at(5), early: at(-1)},
			outlook{factor: 0.5, mayGoEarly: true}, gone(-1, roomIsNeeded, 0.5),
		},
		{"room may be on its way", fakeOrder{over: at(5), early: at(-1)}, outlook{factor: 0.5}, decision{measure: true}},
		{
			"room is lacking, and enough are being deleted", fakeOrder{over: at(5), early: at(-1)},
			outlook{factor: 0.5, mayGoEarly: true, full: true}, decision{},
		},
		{"enough are being deleted", fakeOrder{over: at(5), early: at(-1)}, outlook{factor: 0.5, full: true}, decision{}},
		{"not yet under pressure", fakeOrder{over: at(5), early: at(1)}, outlook{factor: 0.5}, decision{at: in(1)}},
		{
			"not yet, one to be tried again before", fakeOrder{over: at(5), early: at(2)},
			outlook{factor: 0.5, retry: in(1)}, decision{at: in(1)},
		},
		{
			"guaranteed, in the band", fakeOrder{over: at(5), early: at(2), guaranteed: at(-1)},
			outlook{factor: 0.1, mayGoEarly: true, mayBreak: true}, decision{at: in(2)},
		},
		{
			"pinned only, in the band", fakeOrder{over: at(5), guaranteed: at(-1)},
			outlook{factor: 0.1, mayBreak: true}, decision{at: in(5)},
		},
		{
			"others are left below the floor", fakeOrder{over: at(5), early: at(-1), guaranteed: at(-1)},
			outlook{atBrink: true, mayGoEarly: true}, gone(-1, roomIsNeeded, 0),
		},
		{
			"others will make room", fakeOrder{over: at(5), early: at(2), guaranteed: at(-1)},
			outlook{atBrink: true, mayGoEarly: true}, decision{measure: true},
		},
		{
			"nothing else is left", fakeOrder{over: at(5), early: at(2), guaranteed: at(-1)},
			outlook{atBrink: true, mayBreak: true}, gone(-1, nothingElse, 0),
		},
		{
			"nothing else is left, and enough are being deleted", fakeOrder{over: at(5), guaranteed: at(-1)},
			outlook{atBrink: true, mayBreak: true, full: true}, decision{},
		},
		{
			"nothing else is left for an operation that found no room above the floor",
			fakeOrder{over: at(5), early: at(2), guaranteed: at(-1)}, outlook{mayGoEarly: true, mayBreak: true}, decision{at: in(2)},
		},
		{"nothing at all is left", fakeOrder{over: at(5)}, outlook{atBrink: true, mayBreak: true}, decision{at: in(5)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.now, tt.o.index = now, tt.index
			if got := next(tt.o); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestReasons: with what a deletion is recorded.
func TestReasons(t *testing.T) {
	plain := volume.Record{Lifespan: 10 * time.Hour}
	with := func(kind volume.HoldKind, end time.Duration) volume.Record {
		r := plain
		r.Hold = volume.Hold{Kind: kind, For: end}
		return r
	}
	for _, tt := range []struct {
		name   string
		cause  cause
		record volume.Record
		want   volume.Reason
	}{
		{"its lifespan is over", timeIsOver, plain, volume.Expired},
		{"its pin is over", timeIsOver, with(volume.Pinned, 20*time.Hour), volume.Expired},
		{"its grace is over", timeIsOver, with(volume.Released, time.Hour), volume.ForReleased},
		{"its lifespan is over before its grace", timeIsOver, with(volume.Released, 20*time.Hour), volume.Expired},
		{"released, room is needed", roomIsNeeded, with(volume.Released, time.Hour), volume.ForReleased},
		{"released, of a namespace with too much", tooMuch, with(volume.Released, time.Hour), volume.ForReleased},
		{"too much", tooMuch, plain, volume.ForNamespace},
		{"too many of an owner", repeated, plain, volume.ForOwner},
		{"released, too many of an owner", repeated, with(volume.Released, time.Hour), volume.ForReleased},
		{"room", roomIsNeeded, plain, volume.ForInodes},
		{"young", nothingElse, plain, volume.ForFloor},
		{"pinned", nothingElse, with(volume.Pinned, time.Hour), volume.ForFloor},
	} {
		if got := tt.cause.reason(tt.record, volume.ForInodes); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
