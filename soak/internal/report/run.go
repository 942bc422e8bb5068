package report

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Options describe a run.
type Options struct {
	// Name is that of the workload: a preset's or a file's.
	Name     string
	Workload workload.Workload
	// YAML is the workload as text.
	YAML string
	Seed uint64
	// Command makes the same decisions again.
	Command string
	// Machine says in a line what the run is on, such as the kernel and the
	// file system that was made; it may be empty.
	Machine string
	Sources Sources
}

// Run collects the numbers of a run. Make it with New; it may be used by many
// goroutines.
type Run struct {
	// Count is for whoever does what it counts.
	Count Counters

	options Options
	began   time.Time

	// asking is held while the sources are asked, mu while the fields below are
	// used: a source that takes long holds no call up.
	asking sync.Mutex

	mu      sync.Mutex
	calls   calls
	samples []sample
	// The highest and last numbers that were seen of the driver.
	peak    int64
	threads int
	cpu     time.Duration
}

// Counters are the numbers that others count.
type Counters struct {
	// PodsOver counts the pods whose life is over, with their volumes
	// unpublished; PodsRunning those that are on the node now.
	PodsOver, PodsRunning atomic.Int64
	// Containers counts the pods whose containers were started.
	Containers atomic.Int64
	// Volumes counts all that were to be published, Mounted those that are now.
	Volumes, Mounted atomic.Int64
	// Doubled and Reordered count the calls that were so on purpose. The
	// cancelled ones are counted with the calls.
	Doubled, Reordered atomic.Int64
	// Overfilled counts how often a pod wrote into a volume until it was refused.
	Overfilled atomic.Int64
}

// New begins a run, now.
func New(o Options) *Run { return &Run{options: o, began: time.Now(), calls: newCalls()} }

// Called counts a call that has its answer.
func (r *Run) Called(c history.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.add(c)
}

// Outcome is how a run ended, as far as the numbers do not say it.
type Outcome struct {
	// Unproven is why the run did not come to its end, beside violations; nil
	// if it did.
	Unproven error
	// Dir is the directory with the driver's log; empty if it was removed.
	Dir string
	// CPU is the driver's CPU time over all its processes, after the end of the
	// last one. With 0 it is the time that the last sample saw.
	CPU time.Duration
	// Injected counts the faults of volumes that were really done.
	Injected map[workload.FaultKind]int
}

// End takes the last sample and sums everything up. Nothing may run any more
// that changes the numbers.
func (r *Run) End(o Outcome) *Result {
	r.takeSample()
	r.asking.Lock()
	defer r.asking.Unlock()
	return newResult(r, o, time.Since(r.began))
}
