package actors

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestWorkersWithin(t *testing.T) {
	for threads, want := range map[int]int{0: 2048, 1: 1, 2: 1, 100: 50, 1024: 512, 4096: 2048, 4_194_304: 2048} {
		if got := workersWithin(threads); got != want {
			t.Errorf("of %d threads: %d, want %d", threads, got, want)
		}
	}
}

func TestWorkersRefuseWhatIsTooMuch(t *testing.T) {
	w := NewWorkers(1)
	release := make(chan struct{})
	if err := w.Go(func() { <-release }); err != nil {
		t.Fatal(err)
	}
	wantError(t, w.Go(func() {}), volume.ErrUnavailable)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, w.Close(ended), context.Canceled)
	close(release)
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, w.Go(func() {}), volume.ErrUnavailable)
}

// TestWorkersBeside: an operation that another one waits for finds room where there is none for others, and
// Close waits for it.
func TestWorkersBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorkers(1)
		release, answered := make(chan struct{}), make(chan error, 1)
		if err := w.Go(func() { answered <- w.Beside(func() { <-release }) }); err != nil { // it gives up waiting
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		wantError(t, w.Beside(func() {}), volume.ErrUnavailable)

		closed := make(chan error, 1)
		go func() { closed <- w.Close(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("closed while an operation runs: %v", err)
			closed <- nil
		default:
		}
		wantError(t, w.Beside(func() {}), ErrStopping)
		close(release)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
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

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}
