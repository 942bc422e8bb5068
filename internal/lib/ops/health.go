package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// askInterval is the interval at which the node is asked. On an idle node each question commits
	// the records, so it is no shorter than the interval of the kubelet's probe.
	askInterval = 10 * time.Second
	// unwellInterval is the interval while the node is not healthy.
	unwellInterval = time.Second
	// healthLimit bounds the time of one answer.
	healthLimit = 10 * time.Second
	// maxAge is the age from which the last answer proves nothing: the next one comes within
	// askInterval and healthLimit, unless the process itself is stuck.
	maxAge = 30 * time.Second
)

// health asks the node for its health in the background, one question at a time. A request for
// /healthz gets the last answer, so it neither touches the disk nor waits for one that hangs.
type health struct {
	log logr.Logger
	// known is closed with the first answer.
	known chan struct{}

	mu sync.Mutex
	// unwell is the last answer and answered its time. since is when the first question of those in
	// a row with the same outcome began.
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
			return // the answer only says that ctx has ended
		}
		h.set(err, began)
		pause := askInterval
		if err != nil {
			pause = unwellInterval
		}
		if retry.Pause(ctx, pause) != nil {
			return
		}
	}
}

// set records an answer and logs a change: the kubelet only reports that a probe failed, and ends
// the container after a few.
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
		h.log.Info("not healthy", logkeys.Cause, volume.OneLine(err))
	}
}

// answer returns nil if the node was healthy in its last answer. It waits for the first one.
func (h *health) answer(ctx context.Context) error {
	select {
	case <-h.known:
	case <-ctx.Done():
		return fmt.Errorf("%w: the node has not reported its health yet", errStarting)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case time.Since(h.answered) > maxAge:
		return errors.Join(fmt.Errorf("nothing is known since %s", duration.When(h.answered)), h.unwell)
	case h.unwell != nil:
		return fmt.Errorf("since %s: %w", duration.When(h.since), h.unwell)
	}
	return nil
}
