package scratch

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestSharedSync: those who ask while a sync runs share the one after it, with what came of it, and
// not the one that began before they asked.
func TestSharedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sharedSync
		var syncs atomic.Int32
		release, failure := make(chan error), errors.New("the disk is gone")
		sync := func() error {
			syncs.Add(1)
			return <-release
		}
		outcomes := make(chan error, 3)
		ask := func() { go func() { outcomes <- s.do(sync) }() }
		expect := func(asked int, syncsSoFar int32, want error) {
			t.Helper()
			if n := syncs.Load(); n != syncsSoFar {
				t.Fatalf("%d syncs have begun, want %d", n, syncsSoFar)
			}
			release <- want
			synctest.Wait()
			if len(outcomes) != asked {
				t.Fatalf("a sync answered %d, want %d", len(outcomes), asked)
			}
			for range asked {
				if err := <-outcomes; !errors.Is(err, want) {
					t.Errorf("a sync that ended with %v answered %v", want, err)
				}
			}
		}

		ask()
		synctest.Wait()
		for range 3 {
			ask()
		}
		synctest.Wait()
		expect(1, 1, nil)
		expect(3, 2, failure)
		ask()
		synctest.Wait()
		expect(1, 3, nil)
	})
}

// TestSharedSyncThatPanics: who waits for it is not told that it was done.
func TestSharedSyncThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sharedSync
		release, outcome := make(chan struct{}), make(chan error, 1)
		panics := func() error {
			<-release
			panic("on purpose")
		}
		ask := func() {
			go func() {
				defer func() { _ = recover() }()
				outcome <- s.do(panics)
			}()
		}
		ask() // it runs
		synctest.Wait()
		ask() // it waits to run the next one
		synctest.Wait()
		ask() // it shares that
		synctest.Wait()
		close(release)
		synctest.Wait()
		if len(outcome) != 1 {
			t.Fatal("who waited for a sync that panicked was not answered")
		}
		if err := <-outcome; err == nil {
			t.Error("a sync that panicked was reported as done")
		}
	})
}
