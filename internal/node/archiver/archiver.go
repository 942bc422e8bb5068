package archiver

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// burst is how many bytes are read at once before the rate counts.
	burst = 1 << 20
	// mostGivenUp bounds how many volumes are left out for good. Beyond that all of them are tried once more.
	mostGivenUp = 10_000
	// outage is how many failures in a row are not the fault of single volumes.
	outage = 5
	// forgetAfter is how long after its time a volume that failed is remembered: it may be gone.
	forgetAfter = time.Hour
)

// Archiver copies volumes to the archive. Its methods may be called from several goroutines.
type Archiver struct {
	cfg    Config
	pace   pace
	limit  *rate.Limiter
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// done is closed when no volume is copied any more.
	done chan struct{}
	// news has a value when what waits may have changed, next when the one that copies is to look again.
	news, next chan struct{}
	// draining: the daemon stops, and only failures are still archived.
	draining atomic.Bool
	// drain ends once it does.
	drain     context.Context
	drainAway context.CancelFunc
	waiting   atomic.Pointer[volume.Waiting]
	looking   looking

	mu sync.Mutex
	// givenUp are the volumes that are left out for good, later those that are tried again.
	givenUp map[volume.ID]struct{}
	later   map[volume.ID]another
	// failing is the reason that was logged last; empty once a volume was archived.
	failing string
	// cut ends the copy that runs, where it gives way to failures; else nil. gave is how often copies have since the last of such a
	// volume that was whole.
	cut  func()
	gave int
	// looks counts the looks at what waits, and chose is the number of that which has chosen the copy to cut.
	looks, chose int
}

// another is another try of a volume.
type another struct {
	at    time.Time
	tries int
}

// Start begins to archive.
func Start(cfg Config) (*Archiver, error) { return start(cfg, usualPace) }

func start(cfg Config, times pace) (*Archiver, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	limit := rate.Inf
	if cfg.Rate > 0 {
		limit = rate.Limit(cfg.Rate)
	}
	ctx, cancel := context.WithCancel(context.Background())
	drain, drainAway := context.WithCancel(context.Background())
	a := &Archiver{
		drain: drain, drainAway: drainAway,
		cfg: cfg, pace: times, limit: rate.NewLimiter(limit, burst), cancel: cancel, done: make(chan struct{}),
		news: make(chan struct{}, 1), next: make(chan struct{}, 1),
		givenUp: map[volume.ID]struct{}{}, later: map[volume.ID]another{},
	}
	// Before anyone asks: a gateway that hears that nothing waits lets the node go.
	a.waiting.Store(&volume.Waiting{})
	if _, _, err := a.look(ctx); err != nil {
		a.unknown(err)
	}
	a.tasks.Go(func() {
		defer close(a.done)
		a.run(ctx)
	})
	a.tasks.Go(func() { a.watch(ctx) })
	return a, nil
}

// Wake says that what waits may have changed. It never blocks. On a nil Archiver it does nothing.
func (a *Archiver) Wake() {
	if a != nil {
		signal(a.news)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Waiting returns what waited when that was last looked at, in the words of the API. It never blocks.
func (a *Archiver) Waiting() api.ArchiveWaiting {
	w := a.waiting.Load()
	return api.ArchiveWaiting{Volumes: w.Volumes, Bytes: w.Bytes, Oldest: w.Oldest, Newest: w.Newest}
}

// Unconfirmed is how many volumes were not to be archived, when that was last looked at, because no gateway has said whose they are, or
// because the API server knew no such pod. It never blocks.
func (a *Archiver) Unconfirmed() (unanswered, denied int) {
	w := a.waiting.Load()
	return w.Unanswered, w.Denied
}

// Failing is the reason why the last volumes were not archived; empty if one was since.
func (a *Archiver) Failing() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failing
}

// Stop goes on with failures as long as ctx allows and none fails to be archived, as fast as it can; then it ends what runs. The
// copy of another volume ends at once: the next daemon finds what was uploaded of it.
func (a *Archiver) Stop(ctx context.Context) {
	a.draining.Store(true)
	a.drainAway()
	a.limit.SetLimit(rate.Inf)
	signal(a.next)
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	a.cancel()
	a.tasks.Wait()
}

// watch looks at what waits when there is news, and now and then.
func (a *Archiver) watch(ctx context.Context) {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, a.pace.look)
		select {
		case <-a.news:
		case <-wait.Done():
		}
		cancel()
		if _, _, err := a.look(ctx); err != nil && ctx.Err() == nil {
			a.unknown(err)
		}
		signal(a.next)
		// Pods end in crowds, and each look goes through all that waits.
		_ = retry.Pause(ctx, a.pace.gather)
	}
}

func (a *Archiver) unknown(err error) {
	a.cfg.Log.V(1).Info("what waits to be archived is not known, trying again", logkeys.Cause, err.Error())
}

// look asks what waits, and tells the metrics. It returns the number of the look.
func (a *Archiver) look(ctx context.Context) (volume.Waiting, int, error) {
	done, err := a.looking.begin(ctx, a.drain)
	if err != nil {
		return volume.Waiting{}, 0, err
	}
	number, not, later := a.leftOut()
	limited, cancel := context.WithTimeout(ctx, a.pace.look)
	defer cancel()
	w, err := a.cfg.Volumes.ToArchive(limited, not, later)
	done()
	if err != nil {
		return w, number, err
	}
	a.waiting.Store(&w)
	a.cfg.Metrics.ArchiveWaiting(w)
	if w.Next != "" && w.Rank == 0 {
		a.failureWaits(number)
	}
	return w, number, nil
}

// leftOut begins a look: it returns its number, and the volumes that are left out, for good and for now.
func (a *Archiver) leftOut() (number int, not, later map[volume.ID]struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looks++
	now := time.Now()
	later = map[volume.ID]struct{}{}
	for id, of := range a.later {
		switch {
		case of.at.After(now):
			later[id] = struct{}{}
		case now.Sub(of.at) > forgetAfter:
			delete(a.later, id)
		}
	}
	return a.looks, maps.Clone(a.givenUp), later
}

// run copies one volume after the other until ctx ends, or all is done that is to be done before the daemon ends.
func (a *Archiver) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		w, number, err := a.look(ctx)
		if err != nil || w.Next == "" {
			if a.draining.Load() {
				return
			}
			a.wait(ctx, w)
			continue
		}
		record, err := a.copy(ctx, w.Next, number)
		if ctx.Err() != nil || errors.Is(err, errNotNow) {
			return
		}
		if errors.Is(err, errCutShort) {
			continue // failures wait, or may
		}
		if failures = a.ended(record, err, failures); failures == 0 {
			continue
		}
		if a.draining.Load() || retry.Pause(ctx, a.pace.all.After(failures)) != nil {
			return
		}
	}
}

// wait waits until there may be a volume that is next.
func (a *Archiver) wait(ctx context.Context, w volume.Waiting) {
	longest := a.pace.look
	if w.Later > 0 {
		longest = min(longest, w.Later)
	}
	a.mu.Lock()
	for _, of := range a.later {
		if left := time.Until(of.at); left > 0 {
			longest = min(longest, left)
		}
	}
	a.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	select {
	case <-a.next:
	case <-limited.Done():
	}
}

// ended notes how the copy of a volume has ended. It returns how many have failed in a row for a reason that concerns all.
func (a *Archiver) ended(r volume.Record, err error, failures int) int {
	if err == nil {
		a.again(r, failures >= outage)
		return 0
	}
	f := failureOf(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if f == nil {
		// It is gone, or published again, and in the latter case may come back.
		a.later[r.ID] = another{at: time.Now().Add(a.pace.volume.First)}
		return 0
	}
	a.cfg.Metrics.ArchiveFailed(f.reason)
	if f.forGood {
		a.cfg.Log.Info("a volume is not archived; its files stay on the node until its lifespan is over",
			logkeys.About(r, "reason", f.reason, logkeys.Cause, volume.OneLine(f))...)
		delete(a.later, r.ID)
		if len(a.givenUp) >= mostGivenUp {
			clear(a.givenUp)
		}
		a.givenUp[r.ID] = struct{}{}
		return 0
	}
	tries, waits := a.later[r.ID].tries+1, a.pace.volume
	if f.mayConcernAll() {
		waits = a.pace.all // else none would be tried for minutes after it is over
	}
	a.later[r.ID] = another{time.Now().Add(waits.After(tries)), tries}
	if a.failing != f.reason {
		a.failing = f.reason
		a.cfg.Log.Error(f, "a volume is not archived yet, trying again until it is; others for the same reason are not logged",
			logkeys.About(r, "reason", f.reason)...)
	}
	return failures + 1
}

// again notes that a volume was archived. all: those that have failed before are tried at once, so that failures go first.
func (a *Archiver) again(r volume.Record, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.later, r.ID); all {
		clear(a.later)
	}
	if a.failing != "" {
		a.failing = ""
		a.cfg.Log.Info("volumes are archived again")
	}
}
