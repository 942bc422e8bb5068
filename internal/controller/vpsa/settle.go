package vpsa

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// looks is how often the client looks for a change whose answer got lost; that takes some seconds.
	looks = 5
	// firstLook is before the second look.
	firstLook = 250 * time.Millisecond
	// longestWork is how long the client waits at most for what the array still works on.
	longestWork = 10 * time.Minute
)

// betweenLooks are the waits between looks whether a change was made, before jitter.
var betweenLooks = retry.Backoff{First: firstLook, Longest: 5 * time.Second}

// settle learns what came of a change: err is that of the request, and done looks whether the change
// was made. It returns nil once it was.
func (c *client) settle(ctx context.Context, err error, done func(context.Context) (bool, error)) error {
	limit := looks
	var lost *failure
	switch {
	case err == nil:
	case errors.Is(err, errSubmitted):
		limit = 0
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestWork)
		defer cancel()
	case errors.Is(err, array.ErrCredentials):
		return err
	case errors.As(err, &lost):
		if !lost.open {
			return err
		}
	default:
		// It was refused; perhaps because an earlier request was carried out late.
		is, failed := done(ctx)
		switch {
		case failed != nil:
			return uncertain(errors.Join(err, failed))
		case is:
			return nil
		}
		return err
	}
	for n := 1; ; n++ {
		is, failed := done(ctx)
		if is {
			return nil
		}
		if err == nil {
			err = errors.New("the array says that it is done, and it is not to be seen")
		}
		if failed != nil && !errors.Is(failed, array.ErrUnreachable) && ctx.Err() == nil {
			return uncertain(errors.Join(err, failed))
		}
		if n == limit || retry.Pause(ctx, jitter(betweenLooks.After(n))) != nil {
			return uncertain(err)
		}
	}
}

func uncertain(err error) error { return fmt.Errorf("%w: %w", array.ErrUncertain, err) }

// doubts are changes that the array may still carry out. They belong to the process: a client that
// comes after another one knows them too.
type doubts struct {
	mu sync.Mutex
	// until says when the array has given up on a change.
	until map[string]time.Time
}

var inDoubt = doubts{until: map[string]time.Time{}}

// add keeps a doubt about a change until a time, and returns until when there was one already.
func (d *doubts) add(change string, until time.Time) (earlier time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for name, end := range d.until {
		if !now.Before(end) {
			delete(d.until, name)
		}
	}
	earlier = d.until[change]
	if until.After(earlier) {
		d.until[change] = until
	}
	return earlier
}

// about reports whether the array may still carry out a change.
func (d *doubts) about(change string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until[change])
}

// beginning returns the rest of the changes in doubt whose names begin so.
func (d *doubts) beginning(prefix string) map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]bool{}
	for name, end := range d.until {
		if rest, is := strings.CutPrefix(name, prefix); is && time.Now().Before(end) {
			found[rest] = true
		}
	}
	return found
}

// set keeps a doubt until a time; the zero time removes it.
func (d *doubts) set(change string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if until.IsZero() {
		delete(d.until, change)
		return
	}
	d.until[change] = until
}

// shortTime is how long a change may take that others wait for.
const shortTime = 15 * time.Second

// make makes a change, and keeps a doubt about it while the array may still carry it out. That ends
// with an answer, with a look that sees the change, and when the array has given up: it has the time
// of the request, from when the request reaches it.
func (c *client) make(ctx context.Context, doubt string, q call, done func(context.Context) (bool, error)) error {
	limit := q.limit
	if limit == 0 {
		limit = c.timeout
	}
	earlier := inDoubt.add(doubt, time.Now().Add(2*limit))
	err := c.change(ctx, q)
	refused := (*Error)(nil)
	answered := err == nil || errors.As(err, &refused) && !errors.Is(refused, array.ErrUncertain)
	if !answered {
		inDoubt.add(doubt, time.Now().Add(limit)) // it may have waited for its turn, and was sent by now at the latest
	}
	err = c.settle(ctx, err, done)
	lost := (*failure)(nil)
	unsent := errors.As(err, &lost) && !lost.open
	if answered || unsent || err == nil {
		inDoubt.set(doubt, earlier)
	}
	return err
}

// wait waits until no doubt is left about a change, or until enough says so.
func (c *client) wait(ctx context.Context, doubt string, enough func() (bool, error)) error {
	for {
		// A look that began while a doubt was left may be older than what the array did last.
		doubtful := inDoubt.about(doubt)
		is, err := enough()
		if is || err != nil || !doubtful {
			return err
		}
		if retry.Pause(ctx, jitter(firstLook)) != nil {
			return uncertain(fmt.Errorf("%w, while an earlier request may still come: %s", ended(ctx.Err()), doubt))
		}
	}
}
