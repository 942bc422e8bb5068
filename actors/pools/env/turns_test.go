package env

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: as many comparisons as there are turns begin at once, the next when one has ended, or after
// a while.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, begun := newTurns(), time.Now()
		var ends []func()
		for range atOnce {
			ends = append(ends, waits.Take(t.Context()))
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the first ones waited %s", waited)
		}
		time.AfterFunc(time.Second, ends[0])
		next := waits.Take(t.Context())
		if waited := time.Since(begun); waited != time.Second {
			t.Errorf("the next one waited %s for one that took a second", waited)
		}
		defer next()
		waits.Take(t.Context())()
		if waited := time.Since(begun); waited != time.Second+mostWait {
			t.Errorf("another one waited %s for those that hang", waited-time.Second)
		}
		for _, end := range ends[1:] {
			end()
		}
	})
}
