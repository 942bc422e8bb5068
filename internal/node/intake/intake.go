// Package intake takes in how pods ended, from whatever source, and notes it with their volumes.
//
// A source may repeat itself, and says more of a pod than matters here: the first ending of a pod
// counts, unless it is Succeeded and another source says Failed. An ending may come before its volume
// is known, because a pod can end while its volume is being published. Such endings wait for the
// publish, ten minutes at most, and no more than 2,000.
//
// Nothing here delays a call of the kubelet: [Intake.Published] never blocks, and what is noted goes
// through the node as the answers about owners do. What cannot be noted stays unknown, and then the
// volume keeps its full lifespan.
package intake

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostQueued bounds the endings that wait for their turn. A source that brings more waits.
	mostQueued = 10_000
	// mostSeen bounds how many pods are remembered as ended, in each of two generations.
	mostSeen = 10_000
	// mostEarly and earlyLimit bound the volumes that are not known yet.
	mostEarly  = 2000
	earlyLimit = 10 * time.Minute
	// parallel is how many endings are noted at once: each may be a commit, and commits that run
	// together share a sync.
	parallel = 16
	// endLimit bounds one attempt to note an ending, attempts how many there are of one.
	endLimit = 30 * time.Second
	attempts = 4
	// firstWait is the wait after the first attempt. It doubles with each.
	firstWait = time.Second
)

// Node notes how the pod of a volume ended. Its error wraps [volume.ErrNotFound] for a volume of that
// pod that is not known, and [volume.ErrInvalid] for what it will never accept.
type Node interface {
	End(context.Context, volume.ID, volume.PodUID, volume.Outcome) error
	// KeepEnd keeps how a pod has ended, as package podend encodes it, with its logs if these are kept.
	KeepEnd(context.Context, volume.PodUID, []byte) error
}

// Config is what an Intake works with.
type Config struct {
	Node Node
	// Log may be zero.
	Log logr.Logger
}

// Intake takes in how pods ended.
type Intake struct {
	cfg    Config
	wait   time.Duration
	queue  chan outcome.Ending
	ctx    context.Context // it ends with Stop
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu sync.Mutex
	// seen are the pods whose ending was taken in: the young generation and the old one.
	seen, before map[volume.PodUID]volume.Outcome
	// early are the endings of volumes that are not known; order is theirs, the oldest first.
	early map[volume.ID]early
	order []volume.ID
}

// early is the ending of a volume that is not known.
type early struct {
	pod     volume.PodUID
	outcome volume.Outcome
	name    string
	came    time.Time
}

// Start begins to note endings.
func Start(cfg Config) (*Intake, error) { return start(cfg, firstWait) }

func start(cfg Config, wait time.Duration) (*Intake, error) {
	if cfg.Node == nil {
		return nil, errors.New("intake: Config.Node is missing")
	}
	i := &Intake{
		cfg: cfg, wait: wait, queue: make(chan outcome.Ending, mostQueued),
		seen: map[volume.PodUID]volume.Outcome{}, early: map[volume.ID]early{},
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	for range parallel {
		i.tasks.Go(i.run)
	}
	return i, nil
}

// Stop ends the attempts that run, within ctx. What was not noted stays unknown, unless a source says
// it again to the next daemon.
func (i *Intake) Stop(ctx context.Context) error {
	i.cancel()
	ended := make(chan struct{})
	go func() {
		i.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("outcomes of pods are still being noted")
	}
}

// Take takes in the ending of a pod, if it is news. It waits while too many are queued; its
// error is that of ctx, or [volume.ErrUnavailable] after Stop.
func (i *Intake) Take(ctx context.Context, e outcome.Ending) error {
	if e.Outcome == volume.OutcomeUnknown || len(e.Volumes) == 0 || !i.news(e.Pod, e.Outcome) {
		return nil
	}
	select {
	case i.queue <- e:
		return nil
	case <-ctx.Done():
		i.forget(e.Pod)
		return context.Cause(ctx)
	case <-i.ctx.Done():
		return volume.ErrUnavailable
	}
}

// news reports whether it is news how the pod has ended, and remembers it. One that is Succeeded and
// is stopped later looks as if it was Stopped; that it Failed contradicts the first word.
func (i *Intake) news(pod volume.PodUID, o volume.Outcome) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	last, ok := i.seen[pod]
	if !ok {
		last = i.before[pod]
	}
	if last != volume.OutcomeUnknown && (last != volume.Succeeded || o != volume.Failed) {
		return false
	}
	if len(i.seen) >= mostSeen {
		i.seen, i.before = map[volume.PodUID]volume.Outcome{}, i.seen
	}
	i.seen[pod] = o
	return true
}

// forget lets a pod's ending be taken in again.
func (i *Intake) forget(pod volume.PodUID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.seen, pod)
	delete(i.before, pod)
}

// Published notes the ending of a pod that was known before its volume. It never blocks. On a nil
// Intake it does nothing.
func (i *Intake) Published(r volume.Record) {
	if i == nil {
		return
	}
	i.mu.Lock()
	e, ok := i.early[r.ID]
	if ok {
		delete(i.early, r.ID)
	}
	i.mu.Unlock()
	if !ok || e.pod != r.Pod || time.Since(e.came) > earlyLimit {
		return
	}
	select {
	case i.queue <- outcome.Ending{Pod: e.pod, Outcome: e.outcome, Volumes: []string{e.name}}:
	default: // it stays unknown
	}
}

// run notes endings until Stop.
func (i *Intake) run() {
	for {
		select {
		case <-i.ctx.Done():
			return
		case e := <-i.queue:
			for _, name := range e.Volumes {
				i.note(e, name)
			}
			if e.End != nil {
				i.keepEnd(e)
			}
		}
	}
}

// keepEnd keeps how the pod has ended, if that is kept.
func (i *Intake) keepEnd(e outcome.Ending) {
	ctx, cancel := context.WithTimeout(i.ctx, endLimit)
	defer cancel()
	if err := i.cfg.Node.KeepEnd(ctx, e.Pod, e.End); err != nil && i.ctx.Err() == nil {
		i.cfg.Log.Info("it cannot be kept how a pod has ended; its logs say only what it printed",
			logkeys.PodUID, string(e.Pod), logkeys.Cause, volume.OneLine(err))
	}
}

// note notes the ending with one volume.
func (i *Intake) note(e outcome.Ending, name string) {
	id := volume.KubeletID(e.Pod, name)
	for attempt, wait := 1, i.wait; ; attempt, wait = attempt+1, 2*wait {
		err := i.end(id, e)
		if errors.Is(err, volume.ErrNotFound) {
			// The volume may become known before it is kept here, so it is looked for once more.
			i.keep(id, early{e.Pod, e.Outcome, name, time.Now()})
			if err = i.end(id, e); errors.Is(err, volume.ErrNotFound) {
				return
			}
			i.drop(id)
		}
		switch {
		case err == nil, i.ctx.Err() != nil, errors.Is(err, volume.ErrInvalid), errors.Is(err, volume.ErrGone):
			return
		case attempt == attempts:
			i.cfg.Log.Info("the outcome of a pod cannot be noted; its volume is kept as if it were unknown",
				logkeys.PodUID, string(e.Pod), logkeys.VolumeID, string(id), "outcome", e.Outcome.String(), logkeys.Cause, volume.OneLine(err))
			i.forget(e.Pod) // the source may say it again
			return
		}
		_ = retry.Pause(i.ctx, wait)
	}
}

// end is one attempt.
func (i *Intake) end(id volume.ID, e outcome.Ending) error {
	ctx, cancel := context.WithTimeout(i.ctx, endLimit)
	defer cancel()
	return i.cfg.Node.End(ctx, id, e.Pod, e.Outcome)
}

// keep keeps the ending of a volume that is not known.
func (i *Intake) keep(id volume.ID, e early) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.order) > 0 {
		oldest := i.order[0]
		if kept, ok := i.early[oldest]; ok && len(i.early) < mostEarly && len(i.order) < 2*mostEarly && time.Since(kept.came) <= earlyLimit {
			break
		}
		delete(i.early, oldest)
		i.order = i.order[1:]
	}
	i.early[id] = e
	i.order = append(i.order, id)
}

func (i *Intake) drop(id volume.ID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.early, id)
}
