package actors

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/scratch"
	"github.com/katbox/katbox/internal/volume"
)

// bin is what a trash needs of scratch.Dir.
type bin interface {
	Trash() (names []string, err error)
	Erase(ctx context.Context, name string, pace scratch.Pace) error
}

// trash erases what deletions left in the trash: because the daemon ended in the
// middle, or because something was in the way, such as a mount inside a volume.
type trash struct {
	bin bin
	log logr.Logger
	// more has room for one word that there are more leftovers.
	more chan struct{}

	mu        sync.Mutex
	leftovers map[string]leftover
}

// leftover is an entry that could not be erased. What was in the way may be gone
// soon, or only after days: the waits between the tries grow.
type leftover struct {
	// volume is whose data it was; empty when an earlier process left it.
	volume volume.ID
	tries  int
	due    time.Time
	// reason is why it could not be erased the last time.
	reason string
}

func newTrash(b bin, log logr.Logger) *trash {
	return &trash{bin: b, log: log, more: make(chan struct{}, 1), leftovers: make(map[string]leftover)}
}

// left says that an entry could not be erased, and why; the volume may be empty
// when it is not known, or was told before. It never waits.
func (t *trash) left(name string, id volume.ID, err error) {
	t.mu.Lock()
	l := t.leftovers[name]
	if id != "" {
		l.volume = id
	}
	told := l.reason == err.Error()
	l.tries++
	l.due, l.reason = time.Now().Add(deleteBackoff.after(l.tries)), err.Error()
	t.leftovers[name] = l
	t.mu.Unlock()
	// It may take somebody days to clear, and one line says it all.
	if !told {
		t.log.Error(err, "cannot erase an entry of the trash; it is tried again", "name", name, keyVolume, l.volume)
	}
	select {
	case t.more <- struct{}{}:
	default: // somebody said so already
	}
}

// serve erases all there is in the trash at once and once in a while, and each
// leftover when its time has come.
func (t *trash) serve(ctx context.Context) {
	for {
		t.erase(ctx, t.all())
		again := time.Now().Add(orphanInterval)
		for time.Now().Before(again) {
			timer := time.NewTimer(time.Until(t.next(again)))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-t.more:
			case <-timer.C:
			}
			timer.Stop()
			if t.isDue() {
				t.erase(ctx, t.due(t.all()))
			}
		}
	}
}

// all lists what is in the trash. That a volume's own deletion may be at it does
// no harm: what is gone already is no error.
func (t *trash) all() []string {
	names, err := t.bin.Trash()
	if err != nil {
		t.log.Error(err, "cannot look into the trash; it is tried again", "interval", orphanInterval.String())
	}
	return names
}

func (t *trash) erase(ctx context.Context, names []string) {
	for _, name := range names {
		err := t.bin.Erase(ctx, name, nil)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.left(name, "", err)
			continue
		}
		t.mu.Lock()
		delete(t.leftovers, name)
		t.mu.Unlock()
	}
}

// isDue tells whether the time of any leftover has come.
func (t *trash) isDue() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, l := range t.leftovers {
		if !l.due.After(now) {
			return true
		}
	}
	return false
}

// due picks the entries whose time has come. One that nobody knows is due, too:
// what an erasure comes upon far down in a tree it moves up, under a new name.
// Leftovers that are gone are forgotten.
func (t *trash) due(names []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(t.leftovers, func(name string, l leftover) bool {
		return !l.due.After(now) && !slices.Contains(names, name)
	})
	return slices.DeleteFunc(names, func(name string) bool { return t.leftovers[name].due.After(now) })
}

// next is when the first leftover is due, but not later than the given time.
func (t *trash) next(latest time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leftovers {
		if l.due.Before(latest) {
			latest = l.due
		}
	}
	return latest
}
