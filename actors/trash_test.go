package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/scratch"
)

// fakeBin is a trash whose entries cannot be erased while something is in the way.
type fakeBin struct {
	mu       sync.Mutex
	entries  []string
	inTheWay error
	tries    []time.Time
}

func (b *fakeBin) Trash() ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries), nil
}

func (b *fakeBin) Erase(_ context.Context, name string, _ scratch.Pace) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries = append(b.tries, time.Now())
	if b.inTheWay != nil {
		return b.inTheWay
	}
	b.entries = slices.DeleteFunc(b.entries, func(other string) bool { return other == name })
	return nil
}

// set says what is in the trash, and what is in the way of erasing it.
func (b *fakeBin) set(inTheWay error, entries ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries, b.inTheWay = entries, inTheWay
}

// TestTrashIsTriedAgain: what was in the way of a deletion may be gone soon, or
// only after days.
func TestTrashIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBin{}
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		trash := newTrash(b, log)
		ctx, cancel := context.WithCancel(t.Context())
		go trash.serve(ctx)
		synctest.Wait()

		// A deletion leaves something after the look at the start.
		mounted := errors.New("something is mounted inside")
		b.set(mounted, "x")
		left := time.Now()
		trash.left("x", "csi-x", mounted)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if len(b.tries) < 100 {
			t.Fatalf("%d tries in a day, want about one every ten minutes", len(b.tries))
		}
		if first := b.tries[0].Sub(left); first > deleteBackoff.first {
			t.Errorf("first tried again after %s, want %s at most", first, deleteBackoff.first)
		}
		for i, try := range b.tries[1:] {
			if wait := try.Sub(b.tries[i]); wait < deleteBackoff.first || wait > deleteBackoff.longest {
				t.Errorf("try %d came %s after the one before", i+2, wait)
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "something is mounted inside") || !strings.Contains(lines[0], "csi-x") {
			t.Errorf("log %q, want the reason and the volume, once", lines)
		}

		b.set(nil, "x")
		time.Sleep(deleteBackoff.longest)
		synctest.Wait()
		if len(b.entries) != 0 {
			t.Errorf("%q are still there after what was in the way has gone", b.entries)
		}
		cancel()
		synctest.Wait()
	})
}

// TestWhatATrashEntryBecomes: an erasure may leave something under another name
// than it began with.
func TestWhatATrashEntryBecomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBin{}
		trash := newTrash(b, funcr.New(func(_, _ string) {}, funcr.Options{}))
		ctx, cancel := context.WithCancel(t.Context())
		go trash.serve(ctx)
		synctest.Wait()
		b.set(nil, "from below")
		trash.left("x", "csi-x", errors.New("something is mounted inside"))
		time.Sleep(deleteBackoff.first)
		synctest.Wait()
		if left, _ := b.Trash(); len(left) != 0 {
			t.Errorf("%q are left", left)
		}
		trash.mu.Lock()
		defer trash.mu.Unlock()
		if len(trash.leftovers) != 0 {
			t.Errorf("still remembered: %v", trash.leftovers)
		}
		cancel()
		synctest.Wait()
	})
}

// TestTrashIsLookedIntoOnceInAWhile: entries may come from elsewhere.
func TestTrashIsLookedIntoOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBin{entries: []string{"from the process before"}}
		ctx, cancel := context.WithCancel(t.Context())
		go newTrash(b, funcr.New(func(_, line string) { t.Error(line) }, funcr.Options{})).serve(ctx)
		synctest.Wait()
		if len(b.entries) != 0 {
			t.Error("the trash is not emptied at the start")
		}
		b.set(nil, "later")
		time.Sleep(orphanInterval)
		synctest.Wait()
		if len(b.entries) != 0 {
			t.Error("the trash is not looked into again")
		}
		cancel()
		synctest.Wait()
	})
}
