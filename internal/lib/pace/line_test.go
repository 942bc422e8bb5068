package pace

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadersPassOneAfterAnother while calls run, and all at once while none does.
func TestReadersPassOneAfterAnother(t *testing.T) {
	const readers, batches = 32, 10
	for name, test := range map[string]struct {
		call bool
		want time.Duration
	}{
		"no call":            {want: 0},
		"calls all the time": {call: true, want: readers * batches * quiet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := NewCalls()
				line := NewLine(calls)
				if test.call {
					defer calls.Begin()()
				}
				began := time.Now()
				var all sync.WaitGroup
				for range readers {
					all.Go(func() {
						for range batches {
							if err := line.Wait(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took != test.want {
					t.Errorf("took %s, want %s", took, test.want)
				}
			})
		})
	}
}

// TestAReaderThatEndsLeavesTheLine, wherever it stands.
func TestAReaderThatEndsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := NewCalls()
		line := NewLine(calls)
		defer calls.Begin()()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if err := line.Wait(ctx); err == nil {
					t.Error("passed though it has ended")
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		if err := line.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
