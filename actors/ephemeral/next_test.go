package ephemeral

import (
	"testing"
	"time"
)

// TestNext: what goes next, by the time, the pressure and what is under way. Deadlines are in hours
// from now: without pressure, and with.
func TestNext(t *testing.T) {
	const none = time.Duration(1 << 62)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d * time.Hour) }
	tests := []struct {
		name             string
		whole, early     time.Duration
		factor           float64
		mayGoEarly, full bool
		retry            time.Duration
		want             decision
	}{
		{name: "no volume", whole: none, early: none, factor: 0, want: decision{none: true}},
		{name: "no volume but one to be tried again", whole: none, early: none, factor: 1, retry: 3, want: decision{none: true, at: in(3)}},
		{name: "not due", whole: 2, early: 2, factor: 1, mayGoEarly: true, want: decision{at: in(2)}},
		{name: "not due, and one to be tried again before", whole: 2, early: 2, factor: 1, retry: 1, want: decision{at: in(1)}},
		{name: "not due, and one to be tried again later", whole: 2, early: 2, factor: 1, retry: 3, want: decision{at: in(2)}},
		{name: "due now", whole: 0, early: 0, factor: 1, want: decision{delete: true, expired: true, factor: 1}},
		{name: "expired, whatever room is on its way", whole: -1, early: -5, factor: 0, want: decision{delete: true, expired: true, factor: 1}},
		{name: "expired, and enough are being deleted", whole: -1, early: -1, factor: 1, full: true, want: decision{}},
		{name: "early, and room is lacking", whole: 5, early: -1, factor: 0.5, mayGoEarly: true, want: decision{delete: true, factor: 0.5}},
		{name: "early, and room may be on its way", whole: 5, early: -1, factor: 0.5, want: decision{measure: true}},
		{name: "early, and enough are being deleted", whole: 5, early: -1, factor: 0.5, mayGoEarly: true, full: true, want: decision{}},
		{name: "not yet under pressure", whole: 5, early: 1, factor: 0.5, want: decision{at: in(1)}},
		{name: "not yet under pressure, one to be tried again before", whole: 5, early: 2, factor: 0.5, retry: 1, want: decision{at: in(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := outlook{now: now, factor: tt.factor, mayGoEarly: tt.mayGoEarly, full: tt.full}
			if tt.retry != 0 {
				o.retry = in(tt.retry)
			}
			o.deadline = func(factor float64) (time.Time, bool) {
				switch {
				case tt.whole == none:
					return time.Time{}, false
				case factor == 1:
					return in(tt.whole), true
				default:
					return in(tt.early), true
				}
			}
			if got := next(o); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
