package check

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// canaryInterval is how often the canaries are looked at.
	canaryInterval = time.Second
	// stackInterval is how often the mount table is read for targets with more than one mount.
	stackInterval = time.Second
	// turnInterval is how often some of the many are looked at in turn, so that
	// the looks of a second do not come all at once.
	turnInterval = 50 * time.Millisecond
	turns        = int(time.Second / turnInterval)
)

// Checker checks the promises. It may be used by many goroutines.
type Checker struct {
	cfg      Config
	pressure pressure
	started  time.Time

	mu        sync.Mutex
	byVolume  map[*history.Volume]*published
	published ring[*published]
	// spoilt are published volumes whose data was reported as lost.
	spoilt   map[*history.Volume]bool
	retained ring[*retained]
	due      byNext
	ages     byAge
	// successes are the retained volumes of pods that did not fail, where the driver is told how pods end.
	successes byAge
	// suspicions are those that were not judged yet.
	suspicions []suspicion
	abandoned  ring[*retained]
	// lastEvicted is when a retained volume was last found gone by pressure.
	lastEvicted time.Time
	// stall is of lookAtEvictions alone.
	stall   stall
	samples []sample
	counts  Counts
	// excused are the data directories that may be left.
	excused map[string]bool
	// hindered are the volumes in which something was mounted: the driver may
	// have set them aside, and comes back to them later.
	hindered     []*retained
	toldCanaries string
	// known are the inline volumes of the run by ID, gone those of them that are
	// over, the first to go first.
	known map[string]*acquaintance
	gone  []*acquaintance
	// ends are those of the retained volumes, the first one first.
	ends []end
	// lookers are the volumes that attach others, by ID.
	lookers map[string]*history.Volume
	// hoard is what they have attached, by their IDs. pinsSent: a person has pinned something.
	hoard    map[string]hoarded
	pinsSent bool
	// owned are the volumes of pods that have an owner.
	owned map[ownerKey][]*sibling
	// vain are the volumes whose files a process has open; nil if none does.
	vain *vain
	// removals are the last ones.
	removals []*removal
	// budget is what the driver's process may have.
	budget budget
	// err is why the checker cannot check, by the first time.
	err error
}

// Counts is how far the checker is.
type Counts struct {
	// Published is how many volumes have to have their data now, Following how
	// many retained or abandoned ones are not over yet.
	Published, Following int
	// Seen is how many retained volumes were there in the last second before
	// their deadline.
	Seen int
	// Expired is how many went in time, Evicted how many went early by pressure.
	Expired, Evicted int
	// Removed is how many a person removed.
	Removed int
	// Repeated is how many went early because enough others of their owner stayed.
	Repeated int
	// Attached is how many another pod attached, until it was gone.
	Attached int
	// Lateness is, for each expired one in which nothing was mounted, how long
	// after its deadline it was found gone.
	Lateness []time.Duration
	// PressureFactor is by how much lifespans shrink at present; 1 is not at all.
	PressureFactor float64
}

// New prepares a checker; Run has it look.
func New(cfg Config) (*Checker, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.EnoughCalls == 0 {
		cfg.EnoughCalls = enoughCalls
	}
	return &Checker{cfg: cfg, started: time.Now(), byVolume: make(map[*history.Volume]*published),
		spoilt: make(map[*history.Volume]bool), excused: make(map[string]bool), known: make(map[string]*acquaintance),
		lookers: make(map[string]*history.Volume), hoard: make(map[string]hoarded), owned: make(map[ownerKey][]*sibling)}, nil
}

// Run looks at everything that is to be looked at regularly, until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, work := range []struct {
		interval time.Duration
		do       func()
	}{
		{measureInterval, c.measure},
		{dueInterval, c.lookAtDue},
		{pressureInterval, c.lookAtEvictions},
		{pressureInterval, c.judgeSuspicions},
		{canaryInterval, c.lookAtCanaries},
		{stackInterval, c.lookAtStacks},
		{turnInterval, func() { c.lookAtSomePublished(publishedLooks / turns) }},
		{turnInterval, func() { c.lookAtSomeRetained(retainedLooks / turns) }},
		{turnInterval, func() { c.lookAtSomeAbandoned(max(1, abandonedLooks/turns)) }},
	} {
		wg.Go(func() {
			for {
				work.do()
				if pause.For(ctx, work.interval) != nil {
					return
				}
			}
		})
	}
}

// Finish says that no more volumes come. It waits until all that are followed
// are over and then looks at what is left; Run has to go on meanwhile. The error
// says why something could not be checked, among it that ctx ended.
func (c *Checker) Finish(ctx context.Context) error {
	for {
		c.mu.Lock()
		left := c.following()
		c.mu.Unlock()
		if left == 0 {
			break
		}
		if err := pause.For(ctx, dueInterval); err != nil {
			return fmt.Errorf("%d volumes are not over yet: %w", left, err)
		}
	}
	err := c.awaitEmpty(ctx, c.limitOfRemains(time.Now()))
	err = errors.Join(err, c.checkMounts())
	c.lookAtCanaries()
	c.checkCost()
	c.checkLateness()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.err)
}

// Counts says how far the checker is.
func (c *Checker) Counts() Counts {
	factor := c.pressure.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Lateness = append([]time.Duration(nil), n.Lateness...)
	n.Published = len(c.published.all)
	n.Following = c.following()
	n.PressureFactor = factor
	return n
}

// following is how many volumes are not over. Its caller has the lock.
func (c *Checker) following() int { return len(c.retained.all) + len(c.abandoned.all) }

// fail notes that something could not be checked; nil is nothing.
func (c *Checker) fail(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = fmt.Errorf("not everything could be checked: %w", err)
	}
}
