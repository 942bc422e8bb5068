package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/volume"
)

const (
	// askInterval is how often the node is asked. Each question is a commit of the
	// records on a node that commits nothing by itself, so it is the interval of
	// the kubelet's probe and no shorter.
	askInterval = 10 * time.Second
	// unwellInterval is how soon it is asked again when it was not healthy.
	unwellInterval = time.Second
	// healthLimit bounds how long the node may think about one question.
	healthLimit = 10 * time.Second
	// maxAge is when the last answer proves nothing any more. The next one comes within
	// askInterval and healthLimit, unless the process itself is stuck.
	maxAge = 30 * time.Second
)

// health asks the node how it is, in the background and one question at a time.
// A request for /healthz gets the last answer. So a crowd of requests costs the disk
// nothing, and no request waits for a disk that hangs.
type health struct {
	log logr.Logger
	// known is closed with the first answer.
	known chan struct{}

	mu sync.Mutex
	// unwell is the last answer, answered is when it came, and since is the beginning
	// of the first question of those in a row that had the same outcome.
	unwell          error
	answered, since time.Time
}

// watch asks until ctx ends.
func (h *health) watch(ctx context.Context, healthy func(context.Context) error) {
	for {
		began := time.Now()
		asking, cancel := context.WithTimeout(ctx, healthLimit)
		err := healthy(asking)
		cancel()
		if ctx.Err() != nil {
			return // the answer says no more than that
		}
		h.set(err, began)
		pause := askInterval
		if err != nil {
			pause = unwellInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// set notes an answer and logs what has changed: the kubelet only says that a probe
// has failed, and ends the container after a few.
func (h *health) set(err error, began time.Time) {
	h.mu.Lock()
	before, first := h.unwell, h.answered.IsZero()
	if first || (err == nil) != (before == nil) {
		h.since = began
	}
	h.unwell, h.answered = err, time.Now()
	h.mu.Unlock()
	if first {
		close(h.known)
	}
	switch {
	case err == nil && before != nil:
		h.log.Info("healthy")
	case err != nil && (before == nil || volume.OneLine(before) != volume.OneLine(err)):
		h.log.Info("not healthy", "cause", volume.OneLine(err))
	}
}

// answer returns nil when the node is healthy by its last answer. It waits for the
// first one.
func (h *health) answer(ctx context.Context) error {
	select {
	case <-h.known:
	case <-ctx.Done():
		return fmt.Errorf("%w: the node has not said yet how it is", errStarting)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case time.Since(h.answered) > maxAge:
		return errors.Join(fmt.Errorf("nothing is known since %s", h.answered.Format(time.RFC3339)), h.unwell)
	case h.unwell != nil:
		return fmt.Errorf("since %s: %w", h.since.Format(time.RFC3339), h.unwell)
	}
	return nil
}
