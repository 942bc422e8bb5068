package main

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/soak/internal/pause"
)

// TestQuiet: who works is held up, and only now and then.
func TestQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var q quiet
		go q.come(ctx, rand.New(rand.NewPCG(1, 1)))
		var held time.Duration
		steps := 0
		for pause.For(ctx, 10*time.Millisecond) == nil {
			began := time.Now()
			if q.wait(ctx) == nil {
				steps++
			}
			held += time.Since(began)
		}
		// On average it is quiet for a second after one and a half of work.
		if held < 10*time.Second || held > 40*time.Second || steps < 1000 {
			t.Errorf("in a minute %s were quiet, and there were %d steps", held, steps)
		}
		synctest.Wait()
		if err := q.wait(t.Context()); err != nil {
			t.Errorf("quiet goes on after the end: %v", err)
		}
	})
}
