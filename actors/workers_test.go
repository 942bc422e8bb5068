package actors

import (
	"runtime"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

func TestWorkersWithin(t *testing.T) {
	for threads, want := range map[int]int{0: 2048, 1: 1, 2: 1, 100: 50, 1024: 512, 4096: 2048, 4_194_304: 2048} {
		if got := workersWithin(threads); got != want {
			t.Errorf("of %d threads: %d, want %d", threads, got, want)
		}
	}
}

// TestSpareWorkers: those that have ended an operation carry out the next ones, no more of them
// wait for that than is allowed, and none is left at the end, which would fail the bubble.
func TestSpareWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorkers(MaxWorkers)
		release := make(chan struct{})
		operation := func() { <-release }
		start := func(operations int) {
			for range operations {
				if err := w.Go(operation); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		wantSpare := func(when string, want int) {
			if got := len(w.spare); got != want {
				t.Errorf("%s: %d spare, want %d", when, got, want)
			}
		}
		start(2 * maxSpare)
		wantSpare("while all run", 0)
		close(release)
		synctest.Wait()
		wantSpare("after a burst", maxSpare)

		release = make(chan struct{})
		start(3)
		wantSpare("while three run", maxSpare-3)
		close(release)
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWorkerThatKeepsItsThread: a thread that has a low priority for good does nothing else, such
// as the next publish.
func TestWorkerThatKeepsItsThread(t *testing.T) {
	defer threadKept.Store(false)
	synctest.Test(t, func(t *testing.T) {
		w := NewWorkers(MaxWorkers)
		start := func(f func()) {
			if err := w.Go(f); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var kept int
		start(func() {
			runtime.LockOSThread()
			kept = unix.Gettid()
			giveBack(unix.EPERM)
		})
		start(func() {
			if unix.Gettid() == kept {
				t.Error("the next operation has its thread")
			}
		})
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
