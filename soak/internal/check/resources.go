package check

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/pause"
)

const (
	// memorySlack is by how much a driver's memory may differ from what it was after the start: what the
	// garbage collector has not come to yet.
	memorySlack = 32 << 20
	// memoryPerCall is what a call may take while it is under way: a connection of its own, with its
	// buffers. A burst of 500 pods took 40 MiB.
	memoryPerCall = 64 << 10
	// memoryPerVolume is what a volume may take of the driver's memory while it is known.
	memoryPerVolume = 8 << 10
	// spareThreads is how many threads may come beside those that serve calls, such as those that erase.
	spareThreads = 32
	// spareDescriptors is how many files a process may open once and keep, such as one of /proc.
	spareDescriptors = 4
	// restLimit is how long a driver may take until it has closed all connections of clients that are gone.
	restLimit = 30 * time.Second
)

// Resources is what the driver's process has at a moment.
type Resources struct {
	// Memory is what no file is behind, in bytes.
	Memory               int64
	Descriptors, Threads int
}

// budget is what the process may have by what it had after its start, and by what it has to keep.
type budget struct {
	base Resources
	// publishes is how many were answered since, mostVolumes how many it knew at a time.
	publishes, mostVolumes int
	// hidden are the entries of the working directory that are the driver's own.
	hidden []string
}

// memory is what it may use at most if it was sent so many calls at a time at most.
func (b budget) memory(calls int) int64 {
	return b.base.Memory + memorySlack + memoryPerVolume*int64(b.mostVolumes) + memoryPerCall*int64(calls)
}

// threads is how many it may have if it was sent so many calls at a time at most. No thread of a Go
// program ends, and each file operation that waits has one.
func (b budget) threads(calls int) int { return b.base.Threads + calls + spareThreads }

// Started says that the driver has just started, and what it has then.
func (c *Checker) Started(r Resources) {
	hidden, err := c.hiddenEntries()
	c.fail(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budget.hidden == nil {
		c.budget.hidden = hidden
	}
	c.budget = budget{base: r, hidden: c.budget.hidden, mostVolumes: c.following() + len(c.published.all)}
}

// notePublish counts one that was answered.
func (c *Checker) notePublish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.publishes++
}

// CheckMemory reports a driver that uses more memory than what it keeps accounts for. calls is how many it
// was sent at a time at most. One that keeps 1 MiB of each publish is found out after some 40 of them, where
// it is sent a hundred calls at a time.
func (c *Checker) CheckMemory(r Resources, calls int) {
	c.mu.Lock()
	b := c.budget
	c.mu.Unlock()
	if r.Memory <= b.memory(calls) {
		return
	}
	c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
		"the driver uses %d MiB of memory, %d more than after its start; for the %d volumes that it knew at most and %d calls at a time "+
			"%d more are enough, and it was asked %d times since to publish one",
		r.Memory>>20, (r.Memory-b.base.Memory)>>20, b.mostVolumes, calls, (b.memory(calls)-b.base.Memory)>>20, b.publishes))
}

// CheckAtRest reports what a driver has not given back that knows no volume any more and gets no calls.
// look is false once it has ended. calls is how many it was sent at a time at most.
func (c *Checker) CheckAtRest(ctx context.Context, look func() (Resources, bool), calls int) error {
	c.mu.Lock()
	b := c.budget
	c.mu.Unlock()
	most, until := b.base.Descriptors+spareDescriptors, time.Now().Add(restLimit)
	r, ok := look()
	for ; ok && r.Descriptors > most && time.Now().Before(until); r, ok = look() {
		if err := pause.For(ctx, dueInterval); err != nil {
			return err
		}
	}
	if !ok {
		return nil // that it ended is among the findings
	}
	c.CheckMemory(r, calls)
	if r.Descriptors > most {
		c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
			"the driver gets no calls and knows no volume, but it has %d files open, and had %d after its start; "+
				"it was asked %d times since to publish a volume", r.Descriptors, b.base.Descriptors, b.publishes))
	}
	if most := b.threads(calls); r.Threads > most {
		c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
			"the driver has %d threads, and had %d after its start; for %d calls at a time %d are enough, "+
				"and it was asked %d times since to publish a volume", r.Threads, b.base.Threads, calls, most, b.publishes))
	}
	return nil
}

// CheckLeft reports what a driver that has ended has left: records of volumes that are over, and entries
// of its own in the working directory that were not there after its first start.
func (c *Checker) CheckLeft(records int) error {
	c.mu.Lock()
	// What was reported, or what a fault hindered, it may know still.
	known, before := len(c.excused)+len(c.published.all)+c.following(), c.budget.hidden
	c.mu.Unlock()
	if records > known {
		c.cfg.Findings.Add(history.NoLeak, nil, fmt.Sprintf(
			"all volumes are over, but for %d that it may know still, and the driver has %d on record", known, records))
	}
	now, err := c.hiddenEntries()
	more := slices.DeleteFunc(now, func(name string) bool { return slices.Contains(before, name) })
	if len(more) > 0 {
		c.cfg.Findings.Add(history.NoLeak, nil,
			"the driver has ended and left in its working directory what was not there after its start: "+some(more))
	}
	return err
}

// hiddenEntries are those of the working directory that are no pod's.
func (c *Checker) hiddenEntries() ([]string, error) {
	entries, err := os.ReadDir(c.cfg.Work)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
