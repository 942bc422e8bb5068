package volume

import (
	"testing"
	"time"
)

// TestKept: only Succeeded shortens, except for a pod that wants nothing kept, and a grace is left.
func TestKept(t *testing.T) {
	const grace = 10 * time.Minute
	terms := Terms{Lifespan: 12 * time.Hour, LifespanSucceeded: time.Hour}
	for _, tt := range []struct {
		retain    Retain
		outcome   Outcome
		succeeded time.Duration
		want      time.Duration
	}{
		{RetainAlways, OutcomeUnknown, time.Hour, 12 * time.Hour},
		{RetainAlways, Failed, time.Hour, 12 * time.Hour},
		{RetainAlways, Stopped, time.Hour, 12 * time.Hour},
		{RetainAlways, Succeeded, time.Hour, time.Hour},
		{RetainAlways, Succeeded, time.Minute, grace},
		{RetainOnFailure, OutcomeUnknown, time.Hour, 12 * time.Hour},
		{RetainOnFailure, Failed, time.Hour, 12 * time.Hour},
		{RetainOnFailure, Stopped, time.Hour, 12 * time.Hour},
		{RetainOnFailure, Succeeded, time.Hour, grace},
		{RetainNever, OutcomeUnknown, time.Hour, grace},
		{RetainNever, Failed, time.Hour, grace},
		{RetainNever, Succeeded, time.Hour, grace},
	} {
		terms.Retain, terms.LifespanSucceeded = tt.retain, tt.succeeded
		if got := terms.Kept(tt.outcome, grace); got != tt.want {
			t.Errorf("retain %s, %s after %v: kept for %v, want %v", tt.retain, tt.outcome, tt.succeeded, got, tt.want)
		}
	}
	short := Terms{Lifespan: time.Minute, Retain: RetainNever}
	if got := short.Kept(Succeeded, grace); got != time.Minute {
		t.Errorf("a lifespan of a minute became %v", got)
	}
}
